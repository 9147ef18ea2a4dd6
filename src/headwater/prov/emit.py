"""A publisher of provenance for Python jobs: what each execution of a function used and made.

>>> import tempfile
>>> from pathlib import Path
>>> folder = tempfile.mkdtemp()
>>> with Emitter(folder, "count") as emitter:
...     with emitter.execution("map", node="n3") as run:
...         run.used("tweets/7")
...         run.generated("pairs/7-0", "pairs/7-1")
...     emitter.end()
>>> told, end = [file.read_text() for file in sorted(Path(folder).iterdir())]
>>> told.count("wasGeneratedBy"), end
(2, '{"type":"end","job":"count"}\\n')

Files appear in the folder complete: they are written under a hidden name, then renamed. Give each
process its own emitter; several may share a folder, and one of them tells the end.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
import uuid
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

ROLL = 16 << 20
"""Bytes after which a file is published and the next begun."""

_MOST = 5_000
"""Elements in a group: an execution with more is told by several, as it is one by its name."""


_LONGEST = 4096
"""Bytes that a name may have; as in `headwater.reduce.elements`, which is not imported here."""

_PATIENCE = 120.0
"""Seconds that a broker may take for a message."""


class Emitter:
    """Publishes the provenance of a job to a folder, or with `kafka:<topic>` to a topic.

    A file is published when it has `roll` bytes, with the first element that comes `every` seconds
    after its first, and with `flush`, `close` and `end`. Threads may share an emitter.
    """

    def __init__(
        self,
        target: str | os.PathLike[str],
        job: str,
        *,
        roll: int = ROLL,
        every: float = 10.0,
        servers: str = "localhost:9092",
    ) -> None:
        self.job = _named("job", job)
        self._name = uuid.uuid4().hex[:12]
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._closed = False
        place = os.fspath(target)
        self._target: _Target
        if place.startswith("kafka:"):
            self._target = _Topic(place.removeprefix("kafka:"), servers)
        else:
            self._target = _Folder(Path(place), f"{_for_file(job)}-{self._name}", roll, every)

    def execution(
        self, function: str, *, node: str | None = None, name: str | None = None
    ) -> Execution:
        """One execution of a function; use it in a `with`, at whose end it is published.

        Its name must be its own in the job; without one it is given one. One that raises tells
        nothing: what it made is taken not to exist.
        """
        if name is None:
            name = f"{function}-{self._name}-{next(self._numbers)}"
        return Execution(self, _named("function", function), node, _named("execution", name))

    def derived(self, entity: str, *sources: str, output: bool = False) -> None:
        """An entity was derived from others, by no execution that is told of."""
        self._write(entity, [_derived(entity, source, output) for source in sources])

    def member(self, collection: str, *entities: str, output: bool = False) -> None:
        """A collection has these members."""
        self._write(collection, [_member(collection, entity, output) for entity in entities])

    def flush(self) -> None:
        """Publishes what has been told so far."""
        with self._lock:
            self._target.flush()

    def end(self) -> None:
        """Tells that the job has no more, once all else is published, and closes."""
        self.flush()
        self._write(self.job, [{"type": "end", "job": self.job}])
        self.close()

    def close(self) -> None:
        """Publishes and closes; the job may go on elsewhere."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._target.close()

    def __enter__(self) -> Emitter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, key: str, lines: list[dict[str, Any]]) -> None:
        """Writes lines one after the other; those of one key stay in order."""
        data = [json.dumps(line, separators=(",", ":"), ensure_ascii=False) for line in lines]
        with self._lock:
            if self._closed:
                raise HeadwaterError(f"the emitter of job {self.job!r} is closed")
            for line in data:
                self._target.write(key, line.encode())


class Execution:
    """What one execution of a function used and made; published as one group."""

    def __init__(self, emitter: Emitter, function: str, node: str | None, name: str) -> None:
        self.name = name
        self._emitter = emitter
        self._told = {"execution": name, "function": function, "node": node, "job": emitter.job}
        self._elements: list[dict[str, Any]] = []
        self._over = False

    def used(self, *entities: str) -> None:
        """It read these."""
        for entity in entities:
            self._add("used", activity=self.name, entity=_named("entity", entity))

    def generated(self, *entities: str, output: bool = False) -> None:
        """It made these; with `output` they are the job's outputs even if it uses them again."""
        for entity in entities:
            told = {"entity": _named("entity", entity), "activity": self.name}
            self._add("wasGeneratedBy", **told, **_marked(output))

    def derived(self, entity: str, *sources: str, output: bool = False) -> None:
        """It made an entity of these.

        To be told instead of `used` and `generated` where only some of what it used went into it.
        """
        for source in sources:
            self._add(**_derived(entity, source, output))

    def member(self, collection: str, *entities: str, output: bool = False) -> None:
        """It put these into a collection."""
        for entity in entities:
            self._add(**_member(collection, entity, output))

    def __enter__(self) -> Execution:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        elements, self._elements, self._over = self._elements, [], True
        if kind is None:
            told = {name: value for name, value in self._told.items() if value is not None}
            pieces = (elements[at : at + _MOST] for at in range(0, len(elements), _MOST))
            self._emitter._write(self.name, [{"group": piece, **told} for piece in pieces])

    def _add(self, type: str, **fields: Any) -> None:
        if self._over:
            raise HeadwaterError(f"execution {self.name!r} is over: tell what it did in its `with`")
        self._elements.append({"type": type, **fields, "time": time.time_ns() // 1_000_000})


class _Target(Protocol):
    """Where lines go; called by one thread at a time."""

    def write(self, key: str, line: bytes) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...


class _Folder:
    """Files of lines in a folder."""

    def __init__(self, folder: Path, name: str, roll: int, every: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._name, self._roll, self._every = folder, name, roll, every
        self._numbers = itertools.count()
        self._file: IO[bytes] | None = None
        self._size, self._since = 0, 0.0

    def write(self, key: str, line: bytes) -> None:
        if self._file is None:
            self._final = self._folder / f"{self._name}-{next(self._numbers):06d}.jsonl"
            self._hidden = self._final.with_name(f".{self._final.name}.writing")
            self._file = self._hidden.open("wb")
            self._size, self._since = 0, time.monotonic()
        self._file.write(line + b"\n")
        self._size += len(line) + 1
        if self._size >= self._roll or time.monotonic() - self._since >= self._every:
            self.flush()

    def flush(self) -> None:
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None
            self._hidden.replace(self._final)

    def close(self) -> None:
        self.flush()


class _Topic:
    """Messages of a Kafka topic, those of one execution in one partition."""

    def __init__(self, topic: str, servers: str) -> None:
        try:
            from confluent_kafka import Producer
        except ImportError:
            raise HeadwaterError(
                f"publishing to kafka:{topic} needs the package confluent-kafka: "
                "pip install 'headwater[kafka]', or give a folder"
            ) from None
        self._topic = topic
        self._failed: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,  # a message that is sent again is not there twice
                "message.timeout.ms": int(1_000 * _PATIENCE),
                "log_level": 0,  # errors are raised, not printed
            }
        )

    def write(self, key: str, line: bytes) -> None:
        while True:
            try:
                self._producer.produce(self._topic, line, key.encode(), on_delivery=self._delivered)
                self._producer.poll(0)
                return
            except BufferError:  # the broker is slower than we: wait for what it has yet to take
                self._producer.poll(0.1)

    def flush(self) -> None:
        self._producer.flush()
        if self._failed:
            raise HeadwaterError(f"can't publish to kafka:{self._topic}: {self._failed[0]}")

    def close(self) -> None:
        self.flush()

    def _delivered(self, error: KafkaError | None, _: object) -> None:
        if error is not None:
            self._failed.append(error.str())


def _derived(entity: str, source: str, output: bool) -> dict[str, Any]:
    named = {"generatedEntity": _named("entity", entity), "usedEntity": _named("entity", source)}
    return {"type": "wasDerivedFrom", **named, **_marked(output)}


def _member(collection: str, entity: str, output: bool) -> dict[str, Any]:
    named = {"collection": _named("collection", collection), "entity": _named("entity", entity)}
    return {"type": "hadMember", **named, **_marked(output)}


def _marked(output: bool) -> dict[str, bool]:
    return {"output": True} if output else {}


def _named(what: str, name: object) -> str:
    """Refuses here what would be a dead letter there."""
    if isinstance(name, str) and 0 < len(name.encode("utf-8", "replace")) <= _LONGEST:
        return name
    shown = repr(name) if len(repr(name)) <= 80 else f"{repr(name)[:77]}..."
    raise HeadwaterError(f"{what}={shown}: a name is a text of 1 to {_LONGEST:,} bytes")


def _for_file(job: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in job)
