"""What is declared of a stream, and kept in its folder."""

from __future__ import annotations

import getpass
import json
import os
import re
import time
import uuid
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args

from headwater.streams import schema as schemas
from headwater.streams.errors import StreamError, StreamRemoved
from headwater.streams.files import write_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pyarrow as pa

FILE = "_stream.json"
FORMAT = 1
"""Of the folder of a stream; another is refused."""

Kind = Literal["person", "program", "flow"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, slots=True)
class Producer:
    """Who publishes: a person, a program, or a node of a flow (`weather/alerts`) in a version.

    >>> str(Producer("weather/alerts", "flow", version=3))
    'flow weather/alerts, version 3'
    """

    name: str
    kind: Kind = "program"
    version: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise StreamError(
                f"kind={self.kind!r} of a producer is not one of {', '.join(get_args(Kind))}"
            )
        if not self.name:
            raise StreamError("a producer has a name")

    def owns_as(self, other: Producer) -> bool:
        """Whether two are one: the versions of a node are."""
        return (self.kind, self.name) == (other.kind, other.name)

    def __str__(self) -> str:
        version = "" if self.version is None else f", version {self.version}"
        return f"{self.kind} {self.name}{version}"


@cache
def me() -> Producer:
    """The person who runs this process."""
    try:
        return Producer(getpass.getuser(), "person")
    except (KeyError, OSError):  # no name for the user's number
        return Producer("unknown", "person")


@dataclass(frozen=True, slots=True)
class Declaration:
    """A stream as declared; all but `stopped` stays as it is."""

    name: str
    schema: str
    producer: Producer
    event_time: str | None = None
    id: str | None = None
    log: str = "parquet"
    """Where the events are: `parquet` for files beside this, or `kafka:TOPIC`."""
    options: Mapping[str, str] = field(default_factory=dict)
    created: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    """In milliseconds since 1970."""
    identity: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Tells a stream from a later one of its name."""
    stopped: bool = False

    def __post_init__(self) -> None:
        require_name(self.name)
        names = self.arrow.names
        for what, column in (("event_time", self.event_time), ("id", self.id)):
            if column is not None and column not in names:
                raise StreamError(
                    f"{what}={column!r} of stream {self.name!r} is none of its columns: "
                    f"{', '.join(names)}"
                )
        if self.event_time is not None:
            kind = schemas.type_text(self.arrow.field(self.event_time).type)
            if not kind.startswith("timestamp"):
                raise StreamError(
                    f"event_time={self.event_time!r} of stream {self.name!r} is a {kind}, not a "
                    "timestamp"
                )

    @property
    def arrow(self) -> pa.Schema:
        """The schema of its events, as Arrow says it."""
        return schemas.parse(self.schema)

    def save(self, folder: Path) -> None:
        """Write the declaration into the stream's folder."""
        write_json(folder / FILE, {"format": FORMAT, **asdict(self)})

    def stop(self, stopped: bool) -> Declaration:
        """The same stream, stopped or not."""
        return replace(self, stopped=stopped)


_loaded: dict[str, tuple[tuple[int, int], Declaration]] = {}
"""What was read last of each file, and of which version of it."""


def load(folder: Path, expected: Declaration | None = None) -> Declaration:
    """The declaration in a stream's folder; with one `expected`, still of that stream."""
    path = os.path.join(folder, FILE)
    try:
        there = os.stat(path)
        # A file is only ever replaced by another, and it is asked for with each call.
        version = (there.st_ino, there.st_mtime_ns)
        known, found = _loaded.get(path, (None, None))
        if found is None or known != version:
            with open(path, "rb") as file:
                found = _from_json(json.load(file), path)
            _loaded[path] = (version, found)
    except (FileNotFoundError, NotADirectoryError):
        raise StreamRemoved(f"stream {folder.name!r} in {folder.parent} was removed") from None
    except ValueError as error:
        raise StreamError(f"{path} is damaged ({error}); put a copy of it back") from error
    if expected is not None and expected.identity != found.identity:
        raise StreamRemoved(
            f"stream {folder.name!r} in {folder.parent} was removed; another now has its name"
        )
    return found


def exists(folder: Path) -> bool:
    """Whether a stream is in a folder."""
    return os.path.isfile(os.path.join(folder, FILE))


def require_name(name: str) -> None:
    """Refuse what can't be a stream's name: it is a folder's, and part of commands."""
    if not _NAME.fullmatch(name):
        raise StreamError(
            f"{name!r} can't be a stream's name: up to 100 letters, digits and '_.-', a letter or "
            "digit first"
        )


def _from_json(told: dict[str, Any], path: str) -> Declaration:
    if told.pop("format", None) != FORMAT:
        raise StreamError(f"{path} is of another version of Headwater")
    return Declaration(**{**told, "producer": Producer(**told["producer"])})
