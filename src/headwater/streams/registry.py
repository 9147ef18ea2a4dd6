"""The registry: the streams of a folder, a sub-folder each, shared by any number of processes."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.errors import UnknownStream
from headwater.streams import declaration as declarations
from headwater.streams import describing, logs, publisher
from headwater.streams.conforming import as_rows_or_table
from headwater.streams.consumers import Consumers
from headwater.streams.declaration import Declaration, Producer, me
from headwater.streams.errors import LogUnreachable, StreamError
from headwater.streams.files import locked
from headwater.streams.grouping import Group, group
from headwater.streams.letters import Letters
from headwater.streams.log import Key
from headwater.streams.logs import open_log, within
from headwater.streams.positions import Position
from headwater.streams.schema import text as ddl
from headwater.streams.subscription import Subscription

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from headwater.streams.conforming import Events
    from headwater.streams.consumers import Consumer
    from headwater.streams.describing import Description
    from headwater.streams.log import Batch, Log, Receipt
    from headwater.streams.logs import Where

DEFAULT = "streams"
"""The streams folder where none is named."""
LOG = "HEADWATER_LOG"
"""The variable that says where the events of new streams are, if not in files."""


def open(folder: str | os.PathLike[str] | None = None) -> Streams:  # noqa: A001 - streams.open
    """The streams of a folder: that named, or by HEADWATER_STREAMS, or `streams`."""
    return Streams(Path(folder or os.environ.get("HEADWATER_STREAMS") or DEFAULT))


def default_log(name: str) -> str:
    """Where the events of a stream are that is made without saying so."""
    given = os.environ.get(LOG, "parquet")
    return f"{given}{name}" if given.startswith("kafka:") else given


class Streams:
    """Named streams in a folder: declare, publish, subscribe, describe, stop, remove."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.abspath(folder))

    # --- what there is

    def names(self) -> list[str]:
        """The names of all streams."""
        if not self.folder.is_dir():
            return []
        found = (path for path in self.folder.iterdir() if not path.name.startswith((".", "_")))
        return sorted(path.name for path in found if declarations.exists(path))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self.names()

    def declaration(self, name: str) -> Declaration:
        """What is declared of a stream."""
        return declarations.load(self.path(name))

    def path(self, name: str) -> Path:
        """The folder of a stream: what Spark's `readStream.parquet` is given."""
        declarations.require_name(name)
        folder = self.folder / name
        if not declarations.exists(folder):
            there = ", ".join(self.names()) or "none"
            raise UnknownStream(
                f"no stream {name!r} in {self.folder}; there is {there}: create it, or correct "
                "the name"
            )
        return folder

    def describe(self, name: str, *, intervals: int = 10, interval: float = 1.0) -> Description:
        """A stream as it is now, with its rates over the last intervals (in seconds)."""
        if intervals < 1 or interval <= 0:
            raise StreamError(f"intervals={intervals} of {interval} s: give 1 or more, above 0 s")
        folder = self.path(name)
        return describing.describe(
            self.declaration(name),
            self.log(name),
            Consumers(folder).all(),
            Letters(folder).count(),
            intervals=intervals,
            interval=interval,
        )

    def describe_all(self, *, intervals: int = 10, interval: float = 1.0) -> list[Description]:
        """Every stream as it is now; one that is removed meanwhile is left out."""
        found = []
        for name in self.names():
            try:
                found.append(self.describe(name, intervals=intervals, interval=interval))
            except LogUnreachable:
                letters = Letters(self.folder / name).count()
                found.append(describing.unreachable(self.declaration(name), letters, interval))
            except (UnknownStream, StreamError):
                if name in self:
                    raise
        return found

    # --- making and ending

    def create(
        self,
        name: str,
        schema: str | pa.Schema,
        *,
        event_time: str | None = None,
        id: str | None = None,
        producer: Producer | None = None,
        log: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Declaration:
        """Declare a stream; its name must be new. Its `log` is files, or `kafka:TOPIC`.

        By default it is what `HEADWATER_LOG` says: with `kafka:PREFIX` a topic of the stream's name
        after the prefix.
        """
        made = Declaration(
            name=name,
            schema=schema if isinstance(schema, str) else ddl(schema),
            producer=producer or me(),
            event_time=event_time,
            id=id,
            log=log or default_log(name),
            options=dict(options or {}),
        )
        return logs.make(self.folder, made)

    def stop(self, name: str) -> None:
        """Accept no more events; subscriptions end when they have read all."""
        self._set_stopped(name, True)

    def resume(self, name: str) -> None:
        """Accept events again."""
        self._set_stopped(name, False)

    def remove(self, name: str, *, force: bool = False) -> None:
        """Delete a stream with its events; refused while it has consumers, unless forced."""
        logs.remove(self.path(name), force=force)

    # --- publishing

    def publish(
        self,
        name: str,
        events: Events,
        *,
        key: str | tuple[str, int] | Key | None = None,
        producer: Producer | None = None,
        consent: bool = False,
    ) -> Receipt:
        """Add events to a stream, all or none; they are safe when this returns.

        Under a `key` that was used before, nothing is added. A stream of another producer is added
        to with `consent` only.
        """
        declared = self._require_consent(name, producer, consent)
        named = None if key is None else Key.of(key)
        given = as_rows_or_table(events)
        return self._group(declared).append(given, producer or me(), named)

    def publisher(
        self,
        name: str,
        *,
        producer: Producer | None = None,
        consent: bool = False,
        size: int = publisher.SIZE,
        linger: float = publisher.LINGER,
    ) -> publisher.Publisher:
        """What takes single events and publishes them in batches."""
        declared = self._require_consent(name, producer, consent)
        return publisher.Publisher(
            self._group(declared),
            declared.arrow,
            Letters(self.path(name)),
            producer or me(),
            size=size,
            linger=linger,
        )

    def letters(self, name: str) -> Letters:
        """The events that could not be published, with the reasons."""
        return Letters(self.path(name))

    # --- reading

    def log(self, name: str) -> Log:
        """The log of a stream."""
        return open_log(self.path(name), self.declaration(name))

    def read(
        self, name: str, start: Where | None = None, end: Where | None = None
    ) -> Iterator[Batch]:
        """The events between two positions as they were published; by default all there are."""
        log = self.log(name)
        first = log.bounds()[0] if start is None else Position.of(start)
        return log.read(first, None if end is None else Position.of(end))

    def table(self, name: str, start: Where | None = None, end: Where | None = None) -> pa.Table:
        """The events between two positions as one table."""
        tables = [batch.table for batch in self.read(name, start, end)]
        return pa.concat_tables([self.declaration(name).arrow.empty_table(), *tables])

    def subscribe(
        self,
        name: str,
        after: Where | None = None,
        *,
        consumer: str | None = None,
        idle: float | None = None,
    ) -> Subscription:
        """Follow a stream after a position: by default from its start.

        A `consumer` is registered by its name, and goes on where it was unless told `after`. It
        says with `done` what it has read. The subscription ends after `idle` seconds without an
        event, if given, and when the stream is stopped.
        """
        folder, declared, log = self.path(name), self.declaration(name), self.log(name)
        consumers = Consumers(folder)
        held = consumers.hold(consumer)
        try:
            position = log.bounds()[0] if after is None else within(log, name, after)
            if consumer is not None:
                known = consumers.register(consumer, position)
                if after is None:
                    position = known.position
                else:
                    consumers.advance(consumer, position)
        except BaseException:
            for one in held:
                one.close()
            raise
        return Subscription(folder, declared, log, consumers, position, consumer, idle, held)

    def consumers(self, name: str) -> list[Consumer]:
        """The consumers of a stream, and how far they are."""
        return Consumers(self.path(name)).all()

    def advance(self, name: str, consumer: str, position: Where) -> None:
        """Say that a consumer has read all before a position; a new one is registered."""
        Consumers(self.path(name)).advance(consumer, within(self.log(name), name, position))

    def forget(self, name: str, consumer: str) -> None:
        """Remove a consumer, for which the stream then waits no longer."""
        Consumers(self.path(name)).forget(consumer)

    def expire(self, name: str, before: Where | datetime, *, force: bool = False) -> int:
        """Delete old events: whole files before a position or a time; how many events it were.

        What a consumer has not read is kept, unless forced.
        """
        log = self.log(name)
        if isinstance(before, datetime):
            moment = before if before.tzinfo is not None else before.replace(tzinfo=UTC)
            position = log.at(int(moment.timestamp() * 1_000))
        else:
            position = within(log, name, before)
        for consumer in Consumers(self.path(name)).all():
            if not force and not position <= consumer.position:
                raise StreamError(
                    f"consumer {consumer.name!r} of stream {name!r} has read to position "
                    f"{consumer.position} only; expire before that, forget it, or force it"
                )
        return log.expire(position)

    # --- inner

    def _set_stopped(self, name: str, stopped: bool) -> None:
        folder = self.path(name)
        with locked(folder / "_lock"):
            self.declaration(name).stop(stopped).save(folder)

    def _require_consent(self, name: str, producer: Producer | None, consent: bool) -> Declaration:
        declared = self.declaration(name)
        asking = producer or me()
        if not consent and not asking.owns_as(declared.producer):
            raise StreamError(
                f"stream {name!r} is of {declared.producer}, not of {asking}; publish into it with "
                "consent=True (--into-existing)"
            )
        return declared

    def _group(self, declared: Declaration) -> Group:
        folder = self.folder / declared.name

        def make() -> Group:
            return Group(declared.name, declared.arrow, open_log(folder, declared))

        return group(str(folder), declared.identity, make)
