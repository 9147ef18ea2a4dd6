"""Starting a map-reduce, and the thread that looks for files until it is told to end."""

from __future__ import annotations

import json
import threading
import time
import uuid
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from headwater.errors import HeadwaterError, RunError
from headwater.mapreduce.journal import Journal
from headwater.mapreduce.settings import DEFAULT_SCHEMA, given
from headwater.mapreduce.working import TOGETHER, Worker
from headwater.spark_errors import one_line
from headwater.streams.files import Held, try_hold, write_json

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

    from headwater.mapreduce.journal import State
    from headwater.mapreduce.settings import Settings
    from headwater.mapreduce.windows import Window
    from headwater.mapreduce.working import Engine, ReduceInfo

_JOB = "job.json"


def mapreduce(
    input_dir: str | os.PathLike[str],
    *,
    map: str | Callable[[Any], Any],
    reduce: str | Callable[[Any, Any], Any],
    window: Window | str | int,
    store: str | os.PathLike[str],
    out: str,
    schema: str = DEFAULT_SCHEMA,
    result: str | None = None,
    combine: bool | str | Callable[[Any, Any], Any] | None = None,
    format: str = "text",
    columns: str | None = None,
    pattern: str = "*",
    streams: str | os.PathLike[str] | None = None,
    state: str | os.PathLike[str] | None = None,
    name: str | None = None,
    source: str | None = None,
    capture: str = "eager",
    settle: float = 1.0,
    poll: float = 0.5,
    once: bool = False,
    on_reduce: Callable[[ReduceInfo], None] | None = None,
) -> MapReduce:
    """Map each file that comes into a directory, and reduce a sliding window of the outputs.

    `map` is a function of a record that gives (key, value) pairs, or of a batch of records, or
    native: `"words"`, or SQL text. `reduce` is a function of a key and its values, `"sum"`,
    `"count"`, `"min"`, `"max"`, or an SQL aggregate. `schema` has the key's columns and, last, the
    value's; `result` the column of what reduce gives, where it is another. `combine` says how the
    pairs of one file are combined: `True` by the reduce itself.

    Every change of the `window` (`hw.length(3)`, `hw.time("10 min")`) gives one set of results: in
    the `store`, with their provenance as `capture` says, and in the stream `out`. With `once` it
    ends when the files that are there are done; else when the directory has a `shutdown.txt`.
    Started again with the same `state` folder, it goes on where it was.
    """
    settings = given(
        input_dir,
        map=map,
        reduce=reduce,
        window=window,
        store=store,
        out=out,
        schema=schema,
        result=result,
        combine=combine,
        format=format,
        columns=columns,
        pattern=pattern,
        streams=streams,
        state=state,
        name=name,
        source=source,
        capture=capture,
        settle=settle,
        poll=poll,
        once=once,
    )
    return start(settings, _on_spark, on_reduce)


def start(
    settings: Settings,
    engine: Callable[[Settings], Engine],
    on_reduce: Callable[[ReduceInfo], None] | None = None,
    together: int = TOGETHER,
) -> MapReduce:
    """Start a map-reduce on an engine, where it was; a job maps `together` files at most."""
    from headwater.mapreduce.outcomes import Outcomes

    with ExitStack() as opened:
        opened.callback(_hold(settings).close)
        identity = _identity(settings)
        ready = engine(settings)
        journal = Journal(settings.state)
        opened.callback(journal.close)
        outcomes = Outcomes(settings, identity)
        opened.callback(outcomes.close)
        outcomes.bind(journal.state)
        work = Worker(settings, journal, ready, outcomes, on_reduce, together)
        return MapReduce(settings, work, journal.state, opened.pop_all().close)


class MapReduce:
    """A map-reduce at work."""

    def __init__(
        self, settings: Settings, work: Worker, state: State, close: Callable[[], None]
    ) -> None:
        self.settings, self.state = settings, state
        self._work, self._close = work, close
        self._stopped, self._ended = threading.Event(), threading.Event()
        self._failure: BaseException | None = None
        name = f"headwater-mapreduce-{settings.name}"
        threading.Thread(target=self._run, name=name, daemon=True).start()

    @property
    def active(self) -> bool:
        """Whether it goes on."""
        return not self._ended.is_set()

    @property
    def dead_letters(self) -> Path:
        """The folder of records, files and keys that were left out, with the reasons."""
        return self.settings.state / "dead-letters"

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most `timeout` seconds; True when it has ended. Raises its error."""
        ended = self._ended.wait(timeout)
        if ended and self._failure is not None:
            if isinstance(self._failure, HeadwaterError):
                raise self._failure
            raise RunError(
                f"map-reduce {self.settings.name!r} failed: {one_line(self._failure)}"
            ) from self._failure
        return ended

    def stop(self) -> None:
        """End after the step at hand; a later start goes on from there."""
        self._stopped.set()
        self.wait()

    def __enter__(self) -> MapReduce:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        self._stopped.set()
        self._ended.wait()
        if kind is None:
            self.wait()

    def __repr__(self) -> str:
        state = "active" if self.active else "ended"
        return f"MapReduce({self.settings.name!r}: {self.state.done} reduces, {state})"

    def _run(self) -> None:
        once = self.settings.once
        try:
            while not self._stopped.is_set():
                busy = self._work.step(time.time_ns(), expires=not once)
                if self._work.ended or (once and not busy and not self._work.growing):
                    break
                if not busy:
                    self._stopped.wait(self._pause())
        except BaseException as error:  # noqa: BLE001 - told to who waits
            self._failure = error
        finally:
            try:
                self._close()
            except Exception as error:  # noqa: BLE001
                self._failure = self._failure or error
            self._ended.set()

    def _pause(self) -> float:
        """Seconds to the next look: sooner if the window changes before."""
        if self.settings.once or (at := self._work.next_expiry()) is None:
            return self.settings.poll
        return max(0.0, min(self.settings.poll, at / 1e6 - time.time() + 0.001))


def _on_spark(settings: Settings) -> Engine:
    from headwater.mapreduce.jobs import Jobs
    from headwater.session import adopt_or_start

    jobs = Jobs(adopt_or_start(), settings.work, settings.out)
    jobs.check()
    return jobs


def _hold(settings: Settings) -> Held:
    try:
        settings.state.mkdir(parents=True, exist_ok=True)
        held = try_hold(settings.state / "lock")
    except OSError as error:
        raise RunError(
            f"state folder {settings.state} can't be written ({error.strerror}); give another"
        ) from error
    if held is None:
        raise RunError(f"another process runs the map-reduce of {settings.state}; stop it first")
    return held


def _identity(settings: Settings) -> str:
    """What tells this map-reduce from others; a state folder of other settings is refused."""
    path = settings.state / _JOB
    if path.exists():
        told = json.loads(path.read_text("utf-8"))
        if told["fingerprint"] != settings.fingerprint:
            raise RunError(
                f"state folder {settings.state} is of other settings ({told['told']}); give them, "
                "or another state folder"
            )
        if told["input"] != str(settings.input):
            raise RunError(
                f"state folder {settings.state} is of files in {told['input']}; give that "
                "directory, or another state folder"
            )
        return str(told["identity"])
    identity = uuid.uuid4().hex
    write_json(
        path,
        {
            "identity": identity,
            "fingerprint": settings.fingerprint,
            "input": str(settings.input),
            "told": f"window {settings.window}, schema {settings.work.pairs}, stream "
            f"{settings.out}, capture {settings.capture}",
        },
    )
    return identity
