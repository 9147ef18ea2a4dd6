"""The queue of a job at work: results into streams, provenance into the store."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.capture.start import open_writer
from headwater.deploy.building.carried import EVENT_ID, EVENT_TIME, POSITION, Carried
from headwater.errors import RunError
from headwater.runtimes.jobs import JobQueue, JobRuntime
from headwater.store.batch import (
    ID,
    TIME,
    Batch,
    FlowRegistration,
    ResultSet,
    SinkRegistration,
    SourceRegistration,
)
from headwater.store.lake.few import commit_few
from headwater.store.lake.writer import LakeWriter
from headwater.streams.declaration import Producer
from headwater.streams.schema import parse
from headwater.streams.sifting import sift

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from headwater.deploy.records import UnitRecord
    from headwater.runtimes.jobs import Execution, Output
    from headwater.store.embedded import EmbeddedWriter
    from headwater.streams import Streams


class JobLine:
    """The queue of a job node with its runtime, shared by the versions of the node."""

    def __init__(
        self, folder: Path, streams: Streams, store: str, session: Callable[[], Any] | None
    ) -> None:
        self._streams, self._store = streams, store
        self.queue = JobQueue(folder)
        self.runtime = JobRuntime(
            self.queue, on_finished=self._finished, on_failed=self._failed, session=session
        )
        self._records: dict[str, tuple[UnitRecord, Carried]] = {}
        self._writer: EmbeddedWriter | LakeWriter | None = None
        self._known: set[str] = set()

    def add(self, record: UnitRecord, given: Carried) -> None:
        """A version of the node: what its executions read and publish."""
        self._records[str(record.version)] = (record, given)

    def start(self) -> None:
        """Begin to work on what is in the queue."""
        if self._writer is None:
            self._writer = open_writer(self._store)
            self.runtime.start()

    def stop(self) -> None:
        """End; steps that run go on by themselves and are found again."""
        self.runtime.stop("leave")
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    # --- what came of executions --------------------------------------------------------------

    def _finished(self, execution: Execution, outputs: list[Output]) -> None:
        record, given = self._records[execution.version]
        ids = [output.id for output in outputs]
        made = self._events(record, record.name, execution, ids, [o.value for o in outputs])
        self._publish(record, record.name, execution, made)
        came_from = [[int(event.id) for event in execution.events]] * len(made)
        self._commit(record, given, record.name, made, came_from)

    def _failed(self, execution: Execution) -> None:
        record, given = self._records[execution.version]
        end = f"{record.name}.failures"
        if end not in record.outputs:
            return
        told = {"reason": execution.reason, "attempts": execution.attempts}
        ids = [int(event.id) for event in execution.events]
        rows = [{**event.value, **told} for event in execution.events]
        made = self._events(record, end, execution, ids, rows)
        self._publish(record, end, execution, made)
        self._commit(record, given, end, made, [[number] for number in ids])

    def _events(
        self,
        record: UnitRecord,
        end: str,
        execution: Execution,
        ids: list[int],
        rows: Sequence[Mapping[str, Any]],
    ) -> pa.Table:
        """What came of an execution as events of its stream."""
        schema = _schema(record, end)
        time = _latest(execution)
        own = [name for name in schema.names if name not in (EVENT_ID, EVENT_TIME)]
        events = [
            {EVENT_ID: number, EVENT_TIME: time, **{name: row.get(name) for name in own}}
            for number, row in zip(ids, rows, strict=True)
        ]
        table, reasons = sift(events, schema)
        if reasons:
            raise RunError(f"job {record.name!r}, {execution.name}: {next(iter(reasons.values()))}")
        return table

    def _publish(
        self, record: UnitRecord, end: str, execution: Execution, events: pa.Table
    ) -> None:
        producer = Producer(f"{record.flow}/{end}", "flow", record.version)
        for stream in record.outputs.get(end, ()):
            self._streams.publish(
                stream, events, key=execution.name, producer=producer, consent=True
            )

    def _commit(
        self,
        record: UnitRecord,
        given: Carried,
        end: str,
        events: pa.Table,
        came_from: list[list[int]],
    ) -> None:
        """Write results with what they came from; told again after a crash, it changes nothing."""
        writer = self._writer
        assert writer is not None
        query_id = f"jobs-{record.flow_name}"
        self._register(writer, record, given, query_id)
        sink = writer.catalog.sink(f"{record.flow_name}/{end}")
        rows = events.rename_columns(
            [{EVENT_ID: ID, EVENT_TIME: TIME}.get(name, name) for name in events.column_names]
        )
        origin = pa.chunked_array([pa.array(came_from, pa.list_(pa.int64()))])
        with writer.batch() if isinstance(writer, LakeWriter) else nullcontext():
            there = writer.query(
                f"SELECT count(*) AS n FROM result_{sink.no} "
                f"WHERE {ID} IN (SELECT unnest(?::BIGINT[]))",
                [events[EVENT_ID].to_pylist()],
            )
            if there["n"][0].as_py() or not len(events):
                return
            last = writer.last_batch(query_id)
            batch = Batch(
                query_id=query_id,
                batch=0 if last is None else last + 1,
                results={end: ResultSet(rows, {record.inputs[0].node: origin})},
            )
            if isinstance(writer, LakeWriter):
                commit_few(writer, record.flow_name, batch)
            else:
                writer.commit(batch)

    def _register(
        self,
        writer: EmbeddedWriter | LakeWriter,
        record: UnitRecord,
        given: Carried,
        query_id: str,
    ) -> None:
        """Have the store know a version of the job as it knows a flow."""
        if record.id in self._known:
            return
        source = record.inputs[0]
        id_column = given.id[0] if given.id else POSITION
        read = {
            "name": source.node,
            "kind": "stream",
            "format": None,
            "path": None,
            "options": {},
            "event_time": given.time,
            "watermark": given.delay,
            "id": {"kind": "column", "columns": [id_column], "types": ["bigint"]},
            "keep": "none",
            "streams": [source.stream],
        }
        made = {
            end: {
                "name": end,
                "sources": [source.node],
                "capture": "eager",
                "kind": "sink",
                "node": end,
                "version": record.version,
                "streams": record.outputs.get(end, []),
            }
            for end in dict.fromkeys([record.name, *record.outputs])
        }
        writer.register(
            FlowRegistration(
                flow=record.flow_name,
                capture="eager",
                query_id=query_id,
                checkpoint="",
                fingerprint="{}",
                definition={"steps": [], "live": None},
                sources=(SourceRegistration(source.node, read, parse(given.schema)),),
                sinks=tuple(
                    SinkRegistration(end, told, _columns(record, end)) for end, told in made.items()
                ),
            )
        )
        self._known.add(record.id)


def _latest(execution: Execution) -> datetime | None:
    times = [event.at for event in execution.events if event.at is not None]
    return datetime.fromtimestamp(max(times), UTC) if times else None


def _schema(record: UnitRecord, end: str) -> pa.Schema:
    """The columns of a job's events; of one that is not published just ids and times."""
    bare = f"{EVENT_ID} bigint, {EVENT_TIME} timestamp"
    return parse(str(record.carried[end]["schema"]) if end in record.carried else bare)


def _columns(record: UnitRecord, end: str) -> pa.Schema:
    """The same without ids and times, as the store has them."""
    return pa.schema([f for f in _schema(record, end) if f.name not in (EVENT_ID, EVENT_TIME)])
