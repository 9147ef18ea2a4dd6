"""The streams of a version: where what each node gives out goes, and what is known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.compose.kinds import Sink, Source
from headwater.deploy.building.carried import EVENT_ID, EVENT_TIME, Carried
from headwater.errors import FlowError
from headwater.streams.declaration import Producer
from headwater.streams.schema import parse, type_text
from headwater.streams.schema import text as ddl

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headwater.compose.plan import Plan
    from headwater.deploy.building.pieces import End, Piece
    from headwater.deploy.records import UnitRecord
    from headwater.streams import Streams


class Channels:
    """The streams that the units of one version read and make."""

    def __init__(self, registry: Streams, plan: Plan) -> None:
        self._registry, self._plan = registry, plan
        self.known: dict[str, Carried] = {}
        """What flows make, by the streams' names; they may not exist yet."""
        self.producers: dict[str, Producer] = {}
        """Who makes those that are new."""
        self._physical: dict[str, str] = {}
        """Where the stream of an end is, by what the plan calls it."""

    def keep(self, piece: Piece, record: UnitRecord) -> None:
        """Know the streams of a unit that stays."""
        for end in piece.outputs:
            published = record.outputs[end.name]
            # Of one end there may be several streams: a job's own and its sinks'.
            place = [e for e in piece.outputs if e.name == end.name].index(end)
            self._physical[end.stream] = published[place]
            self.known[published[place]] = record.stream_of(end.name)

    def carried(self, end: End, stream: str) -> Carried:
        """What is known of a stream that a unit reads."""
        node = self._plan.composition[end.node]
        if isinstance(node, Source) and node.stream is not None:
            return self.outside(end.node, node)
        return self.known[stream]

    def input(self, end: End) -> tuple[str, Carried]:
        node = self._plan.composition[end.node]
        if isinstance(node, Source) and node.stream is not None:
            return node.stream, self.outside(end.node, node)
        stream = self._physical[end.stream]
        return stream, self.known[stream]

    def outside(self, name: str, node: Source) -> Carried:
        """A named stream as a source reads it; it is made where it is declared and not there."""
        stream = str(node.stream)
        if stream not in self._registry:
            if node.schema is None:
                self._registry.path(stream)  # says that there is none
            self._registry.create(
                stream,
                str(node.schema),
                event_time=node.event_time,
                id=node.id[0] if len(node.id) == 1 else None,
            )
        declared = self._registry.declaration(stream)
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

    def publish(self, record: UnitRecord, piece: Piece, carried: Mapping[str, Carried]) -> None:
        """Name the streams of what a unit gives out."""
        for end in piece.outputs:
            told = carried[end.name]
            producer = Producer(f"{record.flow}/{end.name}", "flow", record.version)
            stream = self._named(end, told, producer, record)
            record.outputs.setdefault(end.name, []).append(stream)
            record.carried[end.name] = told.as_json()
            self._physical[end.stream] = stream
            self.known[stream] = told
            self.producers.setdefault(stream, producer)

    def _named(self, end: End, told: Carried, producer: Producer, record: UnitRecord) -> str:
        name = end.stream
        if name not in self._registry:
            return name
        declared = self._registry.declaration(name)
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

    def of_job(self, piece: Piece) -> dict[str, Carried]:
        node: Any = self._plan.composition[piece.name]
        ((_, above),) = [self.input(end) for end in piece.inputs]
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
                kept = getattr(node, "keep", ())
                own = [f for f in parse(above.schema) if f.name in kept]
                own += [f for f in parse(node.schema) if f.name not in (EVENT_ID, EVENT_TIME)]
                schema = _ddl(own)
            time = above.time if above.time in [f.name for f in parse(schema)] else EVENT_TIME
            found[end.name] = Carried(fixed + schema, True, (EVENT_ID,), time, above.delay)
        return found


def _of_flow(producer: Producer, flow: str) -> bool:
    return producer.kind == "flow" and producer.name.partition("/")[0] == flow


def _ddl(fields: Iterable[Any]) -> str:
    return ddl(pa.schema(list(fields)))


def _same(one: str, other: str) -> bool:
    return bool(parse(one).equals(parse(other)))
