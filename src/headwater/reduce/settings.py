"""What is asked of a reduction, checked before anything is started or written."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args
from urllib.parse import quote

from headwater.errors import RunError
from headwater.flow.windows import microseconds
from headwater.reduce.local import Grouping, Watermark, Window
from headwater.reduce.partitioning import PARTITIONS, Partition
from headwater.store.jobs import JobSettings
from headwater.store.jobs.given import Keep
from headwater.store.jobs.given import Strategy as StrategyName
from headwater.store.lake.place import OWN, Place, is_lake

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.reduce.local import Strategy

STRATEGIES: tuple[StrategyName, ...] = get_args(StrategyName)
_KEEPS: tuple[Keep, ...] = get_args(Keep)

_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Given:
    """A reduction as asked for."""

    job: str
    input: str
    store: str
    checkpoint: str
    dead_letters: str
    strategy: StrategyName
    partition: Partition
    partitions: int | None
    local_batch: int
    global_batch: int
    window: int
    watermark: str
    lifetime: str
    functions: bool
    keep: Keep
    once: bool
    idle_after: str | None
    bytes: int | None
    """Of a batch, at most."""
    options: Mapping[str, str]

    @property
    def topic(self) -> str | None:
        """The Kafka topic that is read, if one is."""
        return self.input.removeprefix("kafka:") if self.input.startswith("kafka:") else None

    @property
    def directory(self) -> str | None:
        """The local directory that is read, if one is."""
        if self.topic is not None or "://" in self.input:
            return None
        return self.input

    @property
    def working(self) -> str:
        """Where the global reducer of a lake's job has its own store."""
        return f"{self.checkpoint}-working"

    @property
    def silence(self) -> float | None:
        """Seconds without elements after which the job is complete."""
        return None if self.idle_after is None else _interval("idle_after", self.idle_after) / 1e6

    @property
    def timed(self) -> bool:
        """Whether time decides what is past."""
        return self.strategy == "watermark"

    def local(self) -> Strategy:
        """What local reducers do."""
        match self.strategy:
            case "grouping":
                return Grouping(self.local_batch, named=self.keep == "full")
            case "window":
                return Window(self.local_batch, self.window)
            case "watermark":
                return Watermark(_interval("lifetime", self.lifetime))

    def settings(self) -> JobSettings:
        """What the store knows of the job."""
        microseconds(self.watermark)  # refused here rather than by the query
        return JobSettings(
            job=self.job,
            input=self.input,
            strategy=self.strategy,
            partition=self.partition,
            global_batch=self.global_batch,
            window=self.window,
            watermark=self.watermark,
            lifetime=_interval("lifetime", self.lifetime),
            functions=self.functions,
            keep=self.keep,
            checkpoint=self.checkpoint,
        )


def given(
    input: str | os.PathLike[str],
    *,
    store: str | os.PathLike[str],
    job: str,
    checkpoint: str | os.PathLike[str] | None,
    strategy: str,
    partition: str,
    partitions: int | None,
    local_batch: int,
    global_batch: int,
    window: int | None,
    watermark: str | None,
    lifetime: str | None,
    functions: bool,
    keep: str,
    once: bool,
    idle_after: str | None,
    dead_letters: str | os.PathLike[str] | None,
    options: Mapping[str, str] | None,
) -> Given:
    """Check all that can be wrong by itself, without starting Spark."""
    _one_of("strategy", strategy, STRATEGIES)
    _one_of("partition", partition, PARTITIONS)
    _one_of("keep", keep, _KEEPS)
    _belongs("window", window, strategy, "window")
    _belongs("watermark", watermark, strategy, "watermark")
    _belongs("lifetime", lifetime, strategy, "watermark")
    for name, value in [
        ("partitions", partitions),
        ("local_batch", local_batch),
        ("global_batch", global_batch),
        ("window", window),
    ]:
        if value is not None and value < 1:
            raise RunError(f"{name}={value} is not a number of 1 or more")
    if keep == "full" and strategy != "grouping":
        raise RunError(
            f"keep='full' keeps all edges, and strategy={strategy!r} forgets some on the way; use "
            "strategy='grouping'"
        )
    if once and idle_after is not None:
        raise RunError("give either once=True, which ends by itself, or idle_after=, not both")
    _require_name(job)
    place = _input(os.fspath(input))
    home = _home(store, job, keep, checkpoint)
    given_options = dict(options or {})
    most = given_options.pop("maxBytesPerTrigger", None)
    return Given(
        job=job,
        input=place,
        store=os.fspath(store),
        checkpoint=os.path.abspath(checkpoint or home / "checkpoint"),
        dead_letters=os.path.abspath(dead_letters or home / "dead-letters"),
        strategy=cast("StrategyName", strategy),
        partition=cast("Partition", partition),
        partitions=partitions,
        local_batch=local_batch,
        global_batch=global_batch,
        window=window or 1_000,
        watermark=watermark or "10 minutes",
        lifetime=lifetime or "10 minutes",
        functions=functions,
        keep=cast("Keep", keep),
        once=once,
        idle_after=idle_after,
        bytes=None if most is None else _bytes(most),
        options=given_options,
    )


def _home(
    store: str | os.PathLike[str], job: str, keep: str, checkpoint: str | os.PathLike[str] | None
) -> Path:
    """The folder of what belongs to a job, unless another place is named for it."""
    name = quote(job, safe="")
    if not is_lake(store):
        return Path(os.path.abspath(store)) / "jobs" / name
    if keep == "full":
        raise RunError(
            "keep='full' keeps all edges, and a lake takes dependencies only; reduce to a store in "
            "a folder"
        )
    place = Place.of(store)
    if place.is_local:
        return place.path / OWN / "jobs" / name
    if checkpoint is None:
        raise RunError(
            f"a job into {place} needs checkpoint=, a directory of this machine: its reducer works "
            "beside it"
        )
    return Path(f"{os.path.abspath(checkpoint)}-of-{name}")


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise RunError(f"{name}={value!r} is not one of {', '.join(map(repr, known))}")


def _belongs(name: str, value: Any, strategy: str, owner: str) -> None:
    """Refuse what another strategy would do something with."""
    if value is not None and strategy != owner:
        raise RunError(
            f"{name}={value!r} is of strategy={owner!r} and means nothing with {strategy!r}"
        )


def _require_name(job: str) -> None:
    if not job or len(job.encode()) > _LONGEST_NAME:
        raise RunError(f"a job's name has 1 to {_LONGEST_NAME} bytes, not {len(job.encode())}")


def _input(place: str) -> str:
    if place.startswith("kafka:") or ("://" in place and not place.startswith("file://")):
        return place
    path = os.path.abspath(place.removeprefix("file://"))
    if not os.path.exists(path):
        raise RunError(
            f"there is no directory {path}; make it first, or give kafka:TOPIC for a topic"
        )
    return path


def _interval(name: str, text: str) -> int:
    length = microseconds(text)
    if length <= 0:
        raise RunError(f"{name}={text!r} is not longer than nothing; write for instance '1 minute'")
    return length


def _bytes(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise RunError(f"option maxBytesPerTrigger={text!r} is not a number of bytes")
    return int(text)
