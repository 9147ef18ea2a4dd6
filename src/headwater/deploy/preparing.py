"""A version made ready: which units stay, which are new, and that the new ones can be built.

Nothing that runs is touched here, and nothing that is there already is changed; what is wrong with
a version is found before its first unit is stopped.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headwater.compose.graph import Graph
from headwater.compose.kinds import Sink, Source
from headwater.compose.planning import deployable
from headwater.deploy.calls import Calls, commands_of
from headwater.deploy.carried import EVENT_ID, EVENT_TIME, Carried
from headwater.deploy.frames import Frames
from headwater.deploy.pieces import Piece, pieces
from headwater.deploy.publishing import Publishing
from headwater.deploy.records import InputRecord, UnitRecord
from headwater.deploy.statics import Statics
from headwater.errors import FlowError
from headwater.flow import nodes as steps
from headwater.streams.declaration import Producer
from headwater.streams.schema import parse, type_text
from headwater.streams.schema import text as ddl

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

    from headwater.compose import Composition
    from headwater.compose.plan import Plan
    from headwater.deploy.pieces import End
    from headwater.deploy.records import DeploymentFiles
    from headwater.flow.flow import Flow
    from headwater.streams import Streams


@dataclass(slots=True)
class Built:
    """A unit that can be started: its record, and its query if it is one."""

    record: UnitRecord
    flow: Flow | None = None
    """Of a unit of operators or functions."""


@dataclass(slots=True)
class Prepared:
    """A version: its units in order, of which some run already."""

    composition: Composition
    plan: Plan
    units: list[Built] = field(default_factory=list)
    kept: set[str] = field(default_factory=set)
    """The ids of units that stay as they are."""
    streams: dict[str, Carried] = field(default_factory=dict)
    """The streams that new units publish, which may not exist yet."""
    producers: dict[str, Producer] = field(default_factory=dict)
    calls: Calls = field(default_factory=lambda: Calls(None))

    @property
    def fresh(self) -> list[Built]:
        """The units that are new."""
        return [each for each in self.units if each.record.id not in self.kept]


class Preparing:
    """Makes versions of one deployment ready."""

    def __init__(self, files: DeploymentFiles, streams: Streams, spark: SparkSession) -> None:
        self._files, self._streams, self._spark = files, streams, spark

    def version(
        self,
        composition: Composition,
        version: int,
        code: str | None,
        running: Iterable[UnitRecord] = (),
    ) -> Prepared:
        """The units of a composition, given those that run; raises what is wrong with it."""
        plan = deployable(composition)
        one = _One(self, plan, Calls(code))
        known = {record.signature: record for record in running}
        made: list[str] = []
        try:
            for piece in pieces(plan):
                signature = one.signature(piece)
                if (record := known.get(signature)) is not None:
                    one.keep(piece, record)
                    continue
                made.append(f"{piece.name}@{version}")
                one.add(piece, signature, version)
        except BaseException:
            self.forget(made)
            raise
        return one.prepared

    def forget(self, units: Iterable[str]) -> None:
        """Remove what was made ready and never written down."""
        for unit in units:
            if not self._files.has_unit(unit):
                shutil.rmtree(self._files.unit_folder(unit), ignore_errors=True)

    def rebuild(self, record: UnitRecord) -> Built:
        """A unit that was written down, as it is to be started again."""
        change = self._files.change(record.version)
        composition = self._files.composition(record.version)
        plan = composition.plan()
        one = _One(self, plan, Calls(change.code))
        piece = next(each for each in pieces(plan) if each.name == record.name)
        for each in record.inputs:
            one.known_from(each.stream)
        return Built(record, one.built(piece, record) if record.runtime != "jobs" else None)

    def job_inputs(self, record: UnitRecord) -> tuple[Carried, dict[str, Any]]:
        """What a job reads: its stream, and the values of its static inputs."""
        change = self._files.change(record.version)
        plan = self._files.composition(record.version).plan()
        one = _One(self, plan, Calls(change.code))
        piece = next(each for each in pieces(plan) if each.name == record.name)
        one.known_from(record.inputs[0].stream)
        return one._carried_in(piece.inputs[0], record.inputs[0].stream), one.values(record.name)


class _One:
    """One version in the making."""

    def __init__(self, owner: Preparing, plan: Plan, calls: Calls) -> None:
        self._files, self._streams, self._spark = owner._files, owner._streams, owner._spark
        self._plan, self._calls = plan, calls
        self._graph = Graph(plan.composition)
        self._statics = Statics(plan, calls, self._files.folder / "statics", self._spark)
        self.prepared = Prepared(plan.composition, plan, calls=calls)
        self._physical: dict[str, str] = {}
        """Where the stream of an end is, by what the plan calls it."""

    # --- what a unit is made of ---------------------------------------------------------------

    def signature(self, piece: Piece) -> str:
        """What may not change of a unit without its being another."""
        flow = self._plan.composition
        told: list[Any] = [flow.name, piece.name, piece.runtime]
        for name in piece.nodes:
            node = flow[name]
            told.append([name, node.kind, _ordered(node.written())])
            given = [getattr(node, key, None) for key in ("call", "target", "spark")]
            told += [self._calls.content(call) for call in given if call and ":" in call]
            told += [self._calls.content_of_command(each) for each in commands_of(node)]
            told += [
                [edge.port.name, self._statics.print_of(edge.source)]
                for edge in self._graph.into[name]
                if self._statics.is_static(edge.source)
            ]
        for end in piece.inputs:
            stream, carried = self._input(end)
            told.append([end.name, stream, carried.as_json()])
        told.append([[end.name, end.stream] for end in piece.outputs])
        return hashlib.sha256(json.dumps(told, default=str).encode()).hexdigest()

    def keep(self, piece: Piece, record: UnitRecord) -> None:
        """A unit that stays."""
        self.prepared.kept.add(record.id)
        self.prepared.units.append(Built(record))
        for end in piece.outputs:
            published = record.outputs[end.name]
            # Of one end there may be several streams: a job's own and its sinks'.
            place = [e for e in piece.outputs if e.name == end.name].index(end)
            self._physical[end.stream] = published[place]
            self.prepared.streams[published[place]] = record.stream_of(end.name)

    def add(self, piece: Piece, signature: str, version: int) -> None:
        """A unit that is new."""
        inputs = [InputRecord(end.name, self._input(end)[0]) for end in piece.inputs]
        record = UnitRecord(
            flow=self._plan.composition.name,
            name=piece.name,
            version=version,
            runtime=piece.runtime,
            nodes=list(piece.nodes),
            signature=signature,
            inputs=inputs,
            outputs={},
            carried={},
        )
        if piece.runtime == "jobs":
            carried = self._job_streams(piece)
            self._publish(record, piece, carried)
            record.sinks = list(record.outputs)
            self.prepared.units.append(Built(record))
            return
        frames = self._frames(piece, record)
        self._publish(record, piece, {end.name: frames.carried(end.name) for end in piece.outputs})
        self._end_in_sinks(frames, piece, record)
        record.sinks = list(frames.flow.sinks)
        record.stateful = any(map(_keeps_state, _steps(frames.flow)))
        self.prepared.units.append(Built(record, frames.flow))

    def built(self, piece: Piece, record: UnitRecord) -> Flow:
        """The query of a unit that was written down."""
        frames = self._frames(piece, record)
        self._end_in_sinks(frames, piece, record)
        return frames.flow

    def known_from(self, stream: str) -> None:
        """Have what a unit that was written down has said of a stream."""
        for record in reversed(self._files.units()):
            for end, streams in record.outputs.items():
                if stream in streams:
                    self.prepared.streams[stream] = record.stream_of(end)
                    return

    def values(self, node: str) -> dict[str, Any]:
        """The values of a node's static inputs, by port."""
        return {
            edge.port.name: self._statics.value(edge.source).value
            for edge in self._graph.into[node]
            if self._statics.is_static(edge.source)
        }

    # --- streams ------------------------------------------------------------------------------

    def _input(self, end: End) -> tuple[str, Carried]:
        node = self._plan.composition[end.node]
        if isinstance(node, Source) and node.stream is not None:
            return node.stream, self._outside(end.node, node)
        stream = self._physical[end.stream]
        return stream, self.prepared.streams[stream]

    def _outside(self, name: str, node: Source) -> Carried:
        """A named stream as a source reads it; it is made where it is declared and not there."""
        stream = str(node.stream)
        if stream not in self._streams:
            if node.schema is None:
                self._streams.path(stream)  # says that there is none
            self._streams.create(
                stream,
                str(node.schema),
                event_time=node.event_time,
                id=node.id[0] if len(node.id) == 1 else None,
            )
        declared = self._streams.declaration(stream)
        there = {f.name: type_text(f.type) for f in declared.arrow}
        made = declared.producer.kind == "flow" and declared.id == EVENT_ID
        wanted = declared.schema if node.schema is None else node.schema
        for each in parse(wanted):
            if there.get(each.name) != type_text(each.type):
                raise FlowError(
                    f"source {name!r}: column {each.name!r} {type_text(each.type)} is not what "
                    f"stream {stream!r} has: {declared.schema}"
                )
        own = [f for f in parse(wanted) if not (made and f.name in (EVENT_ID, EVENT_TIME))]
        if made:
            if node.id not in ((), (EVENT_ID,)):
                raise FlowError(
                    f"source {name!r}: the events of stream {stream!r} are identified by "
                    f"{EVENT_ID}, as {declared.producer} makes them; leave id out"
                )
            fixed = [declared.arrow.field(EVENT_ID), declared.arrow.field(EVENT_TIME)]
            return Carried(
                schema=_ddl([*fixed, *own]),
                made=True,
                id=(EVENT_ID,),
                time=node.event_time or EVENT_TIME,
                delay=node.watermark,
            )
        id_columns = node.id or (() if declared.id is None else (declared.id,))
        return Carried(
            schema=_ddl(own),
            made=False,
            id=tuple(id_columns),
            time=node.event_time or declared.event_time,
            delay=node.watermark,
        )

    def _publish(self, record: UnitRecord, piece: Piece, carried: Mapping[str, Carried]) -> None:
        """Name the streams of what a unit gives out."""
        for end in piece.outputs:
            told = carried[end.name]
            producer = Producer(f"{record.flow}/{end.name}", "flow", record.version)
            stream = self._named(end, told, producer, record)
            record.outputs.setdefault(end.name, []).append(stream)
            record.carried[end.name] = told.as_json()
            self._physical[end.stream] = stream
            self.prepared.streams[stream] = told
            self.prepared.producers.setdefault(stream, producer)

    def _named(self, end: End, told: Carried, producer: Producer, record: UnitRecord) -> str:
        name = end.stream
        if name not in self._streams:
            return name
        declared = self._streams.declaration(name)
        same = _same(declared.schema, told.schema)
        sink = self._sink_of(name)
        if sink is not None:
            mine = producer.owns_as(declared.producer) or _of_flow(declared.producer, record.flow)
            if not mine and not sink.append:
                raise FlowError(
                    f"node {end.node!r}: stream {name!r} is of {declared.producer}; name another, "
                    "or publish into it with append: true"
                )
            if not same:
                raise FlowError(
                    f"node {end.node!r}: stream {name!r} has the columns {declared.schema}, and "
                    f"would get {told.schema}; publish under another name"
                )
            return name
        if same and _of_flow(declared.producer, record.flow):
            return name
        return f"{name}.v{record.version}"

    def _sink_of(self, stream: str) -> Sink | None:
        for node in self._plan.composition.nodes.values():
            if isinstance(node, Sink) and node.stream == stream:
                return node
        return None

    def _job_streams(self, piece: Piece) -> dict[str, Carried]:
        node: Any = self._plan.composition[piece.name]
        ((_, above),) = [self._input(end) for end in piece.inputs]
        fixed = f"{EVENT_ID} bigint, {EVENT_TIME} timestamp, "
        found = {}
        for end in piece.outputs:
            if end.output == "failures":
                own = [f for f in parse(above.schema) if f.name not in (EVENT_ID, EVENT_TIME)]
                schema = f"{_ddl(own)}, reason string, attempts int"
            elif node.schema is None:
                raise FlowError(
                    f"node {piece.name!r}: a job whose results are published needs schema, "
                    "their columns"
                )
            else:
                own = [f for f in parse(node.schema) if f.name not in (EVENT_ID, EVENT_TIME)]
                schema = _ddl(own)
            time = above.time if above.time in [f.name for f in parse(schema)] else EVENT_TIME
            found[end.name] = Carried(fixed + schema, True, (EVENT_ID,), time, above.delay)
        return found

    # --- queries ------------------------------------------------------------------------------

    def _frames(self, piece: Piece, record: UnitRecord) -> Frames:
        frames = Frames(
            self._plan.composition,
            piece,
            record.flow_name,
            self._statics,
            self._calls,
            self._spark,
        )
        if not piece.inputs:
            frames.read_outside(piece.name)
        for end, given in zip(piece.inputs, record.inputs, strict=True):
            folder = self._files.unit_folder(record.id) / "inputs" / given.stream
            folder.mkdir(parents=True, exist_ok=True)
            carried = self._carried_in(end, given.stream)
            frames.read(end.name, carried, folder)
            frames.flow.notes[end.name] = {"streams": [given.stream]}
        frames.build()
        return frames

    def _carried_in(self, end: End, stream: str) -> Carried:
        node = self._plan.composition[end.node]
        if isinstance(node, Source) and node.stream is not None:
            return self._outside(end.node, node)
        return self.prepared.streams[stream]

    def _end_in_sinks(self, frames: Frames, piece: Piece, record: UnitRecord) -> None:
        names = list(dict.fromkeys(end.name for end in piece.outputs))
        for name in piece.nodes:
            node = self._plan.composition[name]
            if isinstance(node, Sink) and node.stream is None:
                names.append(name)
        taken = {each.node for each in record.inputs} | {piece.name if not piece.inputs else ""}
        for name in names:
            node = self._plan.composition[name.partition(".")[0]]
            alert = node.alert if isinstance(node, Sink) else None
            streams = tuple(record.outputs.get(name, ()))
            writer = Publishing(
                self._streams,
                streams,
                str(record.carried[name]["schema"])
                if name in record.carried
                else frames.carried(name).schema,
                Producer(f"{record.flow}/{name}", "flow", record.version),
                alert,
            )
            sink = f"{name}.out" if name in taken else name
            frames.flow.sink(sink, frames.frame(name), write=writer)
            note: dict[str, Any] = {"node": name, "version": record.version}
            if streams:
                note["streams"] = list(streams)
            frames.flow.notes[sink] = note


def _ordered(written: Mapping[str, Any]) -> list[Any]:
    return sorted(written.items(), key=lambda item: item[0])


def _steps(flow: Flow) -> list[steps.Node]:
    return [node for sink in flow.sinks.values() for node in sink.upstream()]


def _keeps_state(node: steps.Node) -> bool:
    if isinstance(node, steps.Join):
        return not any(isinstance(side, steps.Static) for side in node.inputs)
    kinds = (steps.Aggregate, steps.GroupFunction, steps.Deduplicate, steps.Ordered)
    return isinstance(node, kinds)


def _of_flow(producer: Producer, flow: str) -> bool:
    return producer.kind == "flow" and producer.name.partition("/")[0] == flow


def _ddl(fields: Iterable[Any]) -> str:
    import pyarrow as pa

    return ddl(pa.schema(list(fields)))


def _same(one: str, other: str) -> bool:
    return bool(parse(one).equals(parse(other)))
