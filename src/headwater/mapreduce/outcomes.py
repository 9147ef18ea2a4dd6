"""Where results go: the store, with their provenance, and then the stream, each exactly once.

A reduce is one batch of the store. What is published is read from there: so after a kill between
the two the stream gets the same results, whatever the functions would give if they ran again.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash
from pyspark import cloudpickle

from headwater.errors import RunError, StoreError
from headwater.mapreduce.mapping import ROW_BITS
from headwater.mapreduce.records import ROW, Unreadable, rows
from headwater.mapreduce.settings import AT, REDUCE, RESULT_ID
from headwater.query import Store
from headwater.store import (
    Batch,
    EmbeddedWriter,
    FlowRegistration,
    ResultSet,
    SinkRegistration,
    SourceRegistration,
    StoreReader,
)
from headwater.store.batch import CONTENT, ID, TIME
from headwater.store.ingest import visible
from headwater.streams import Producer
from headwater.streams import open as open_streams

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.mapreduce.journal import Input, Reduce, State
    from headwater.mapreduce.results import Reduced
    from headwater.mapreduce.settings import Settings
    from headwater.streams import Streams

Ids: TypeAlias = npt.NDArray[np.int64]

EPOCH = datetime.fromtimestamp(0, UTC)
_TIME = pa.timestamp("us", "UTC")
_LAST_ROW = (1 << ROW_BITS) - 1
FILE_COLUMN, ROW_COLUMN = "file", "row"
"""Columns that a record is shown with, unless it has some of these names itself."""


class Outcomes:
    """The store and the stream of one map-reduce."""

    def __init__(self, settings: Settings, identity: str) -> None:
        self._settings, self._identity = settings, identity
        self.streams: Streams = open_streams(settings.streams)
        self._producer = Producer(f"{settings.name} {identity[:8]}", "program")
        self._declare()
        self._writer = EmbeddedWriter.open(settings.store)
        self._reader: Store | None = None

    def bind(self, state: State) -> None:
        """Register with the store; refuse one that belongs to another state folder."""
        settings, writer = self._settings, self._writer
        for flow in writer.flows():
            if flow["flow"] == settings.name and flow["query_id"] != self._identity:
                raise RunError(
                    f"store {settings.store} has {settings.name!r} of another state folder "
                    f"({flow['checkpoint']}); go on with that one, or give another name or store"
                )
        last = writer.last_batch(self._identity)
        if state.done > (-1 if last is None else last) + 1:
            raise RunError(
                f"store {settings.store} lacks reduces that {settings.state} says are done: it is "
                "not the same store; give that one, or another state folder"
            )
        writer.register(registration(settings, self._identity))

    def commit(self, reduce: Reduce, reduced: Reduced, inputs: dict[int, Input]) -> None:
        """Write a reduce's results and their provenance; a reduce that is held is left."""
        settings = self._settings
        moment = EPOCH + timedelta(microseconds=reduce.at)
        count = reduced.rows.num_rows
        table = reduced.rows.append_column(REDUCE, pa.array(np.full(count, reduce.number)))
        table = table.append_column(TIME, pa.repeat(pa.scalar(moment, _TIME), count))
        table = table.select([ID, TIME, *settings.columns.names])
        origins = {} if reduced.sets is None else {settings.source: reduced.sets}
        files = {n: str(settings.input / inputs[n].name) for n in reduce.files}
        records = {}
        if reduced.sets is not None:
            records = {settings.source: self._records(reduced.sets, inputs)}
        self._writer.commit(
            Batch(
                query_id=self._identity,
                batch=reduce.number,
                watermark=moment,
                results={settings.out: ResultSet(table, origins)},
                records=records,
                files={settings.source: files},
                arrivals={
                    settings.source: [(files[n], inputs[n].modified // 10**6) for n in reduce.files]
                },
            )
        )

    def holds(self, reduce: Reduce) -> bool:
        """Whether the store has a reduce."""
        return self._writer.holds(self._identity, reduce.number)

    def publish(self, reduce: Reduce) -> int:
        """Publish the results of a reduce as the store has them; how many they are."""
        settings = self._settings
        if self._reader is None:
            self._reader = Store(StoreReader(settings.store))
        found = self._reader.results(
            f"{settings.name}/{settings.out}", where=f"{REDUCE} = {reduce.number}"
        )
        if found.num_rows:
            events = found.rename_columns(
                [AT if name == "event_time" else name for name in found.column_names]
            )
            key = (f"mapreduce {self._identity}", reduce.number)
            self.streams.publish(
                settings.out, events.select(self._columns), key=key, producer=self._producer
            )
        return int(found.num_rows)

    def close(self) -> None:
        """Let the store go."""
        if self._reader is not None:
            self._reader.close()
        self._writer.close()

    @property
    def _columns(self) -> list[str]:
        return [RESULT_ID, REDUCE, AT, *self._settings.work.output.names]

    def _declare(self) -> None:
        settings, name = self._settings, self._settings.out
        if name not in self.streams:
            self.streams.create(
                name, settings.published, event_time=AT, id=RESULT_ID, producer=self._producer
            )
            return
        known = self.streams.declaration(name)
        if not self._producer.owns_as(known.producer):
            raise RunError(
                f"stream {name!r} in {self.streams.folder} is of {known.producer}, not of this "
                "map-reduce; give another name as out, or remove it"
            )

    def _records(self, sets: pa.ChunkedArray, inputs: dict[int, Input]) -> pa.Table:
        """The records behind some results that the store has not got yet."""
        flat = sets.combine_chunks().flatten() if sets.num_chunks else pa.array([], pa.int64())
        ids = self._missing(np.unique(flat.to_numpy(zero_copy_only=False).astype(np.int64)))
        files = np.unique(ids >> ROW_BITS).tolist()
        tables = [
            self._kept(inputs[file], ids[ids >> ROW_BITS == file] & _LAST_ROW) for file in files
        ]
        schema = pa.schema(
            [(ID, pa.int64()), (TIME, _TIME), (CONTENT, pa.int64()), *shown(self._settings)]
        )
        return pa.concat_tables([schema.empty_table(), *tables])

    def _missing(self, ids: Ids) -> Ids:
        settings = self._settings
        with self._writer.working("reading records") as connection:
            found = connection.execute(
                "SELECT source_no FROM sources WHERE flow = ? AND name = ?",
                [settings.name, settings.source],
            ).fetchall()
            with visible(connection, hw_asked=pa.table({"id": ids})):
                held = connection.execute(
                    f"SELECT id FROM hw_asked WHERE id IN (SELECT {ID} FROM record_{found[0][0]})"
                ).fetchnumpy()["id"]
        return np.setdiff1d(ids, np.asarray(held, np.int64))

    def _kept(self, given: Input, numbers: Any) -> pa.Table:
        settings = self._settings
        path = settings.input / given.name
        found = record_table(settings, given.number, path, numbers)
        if found.num_rows != len(numbers):
            raise RunError(f"{path} has changed since it was mapped; put it back as it was")
        time = pa.scalar(EPOCH + timedelta(microseconds=given.time), _TIME)
        moment = pa.repeat(time, found.num_rows)
        content = [
            xxhash.xxh64_intdigest(json.dumps(row, default=str).encode()) - (1 << 63)
            for row in found.drop_columns([ID]).to_pylist()
        ]
        columns = [found[ID], moment, pa.array(content, pa.int64()), *found.columns[1:]]
        return pa.table(columns, names=[ID, TIME, CONTENT, *found.column_names[1:]])


def shown(settings: Settings) -> pa.Schema:
    """The columns of a record in answers: its file and number, then its own."""
    own = settings.work.format.schema
    place = [(FILE_COLUMN, pa.string()), (ROW_COLUMN, pa.int64())]
    return pa.schema([*(pa.field(n, t) for n, t in place if n not in own.names), *own])


def record_table(settings: Settings, file: int, path: Path, numbers: Any) -> pa.Table:
    """Records of a file by their numbers: `__hw_id`, then the columns of answers."""
    try:
        found = rows(file, path, settings.work.format, numbers)
    except Unreadable as error:
        raise StoreError(
            f"can't read source {settings.source!r} again from {path}: {error}; put it back"
        ) from error
    places = found[ROW].to_numpy()
    columns = {ID: pa.array((file << ROW_BITS) | places), ROW_COLUMN: pa.array(places)}
    columns[FILE_COLUMN] = pa.array([path.name] * len(places), pa.string())
    own = found.drop_columns([ROW])
    columns |= {name: own[name] for name in own.column_names}
    return pa.table({name: columns[name] for name in (ID, *shown(settings).names)})


def registration(settings: Settings, identity: str) -> FlowRegistration:
    """A map-reduce as the store keeps it: one source, one sink, and itself for replays."""
    work = settings.work
    source = {
        "name": settings.source,
        "kind": "stream",
        "format": work.format.name,
        "path": str(settings.input),
        "options": {"pathGlobFilter": settings.pattern},
        "schema": work.format.columns,
        "event_time": None,
        "id": {"kind": "position", "columns": [], "types": []},
        "keep": "contributing" if settings.capture == "eager" else "none",
        "mapreduce": settings.capture == "ancestors",
    }
    sink = {
        "name": settings.out,
        "schema": settings.published,
        "sources": [settings.source],
        "capture": settings.capture,
        "kind": "sink",
        "mapreduce": settings.capture == "ancestors",
    }
    return FlowRegistration(
        flow=settings.name,
        capture=settings.capture,
        query_id=identity,
        checkpoint=str(settings.state),
        fingerprint=settings.fingerprint,
        definition={"steps": [], "live": None, "mapreduce": {"window": str(settings.window)}},
        sources=(SourceRegistration(settings.source, source, shown(settings)),),
        sinks=(SinkRegistration(settings.out, sink, settings.columns),),
        program=_program(settings) if settings.capture == "ancestors" else None,
    )


def _program(settings: Settings) -> bytes:
    """The settings with the user's functions, for replays in other processes."""
    program: bytes = cloudpickle.dumps(settings)  # type: ignore[no-untyped-call]
    return program
