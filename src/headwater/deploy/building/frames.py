"""From a piece's nodes to a `hw.Flow`: one method for each kind of node."""

from __future__ import annotations

from contextlib import suppress
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from headwater.columns import quoted
from headwater.compose.frozen import thawed
from headwater.compose.graph import Graph
from headwater.deploy.building.calls import with_static
from headwater.deploy.building.carried import EVENT_ID, EVENT_TIME, POSITION, Carried, longest
from headwater.deploy.building.joins import joined
from headwater.deploy.monitoring.counting import steps_to_count
from headwater.errors import FlowError
from headwater.flow.flow import Flow
from headwater.flow.frame import Frame
from headwater.streams.schema import parse
from headwater.streams.schema import text as ddl
from headwater.sustain.units import seconds

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from headwater.compose import Composition
    from headwater.compose.kinds import (
        Aggregate,
        Filter,
        Function,
        Join,
        Map,
        Match,
        Merge,
        Service,
        Sink,
        Sql,
    )
    from headwater.compose.structures import Port
    from headwater.deploy.building.calls import Calls
    from headwater.deploy.building.pieces import Piece
    from headwater.deploy.building.statics import Statics
    from headwater.flow.ordering import WindowedFrame

_READING = {"maxFileAge": "36500d", "maxBytesPerTrigger": str(64 << 20)}
"""Events are as old as they are; a batch of all that has gathered could be too large."""


class Frames:
    """The steps of a piece: a frame for each of its nodes."""

    def __init__(
        self,
        composition: Composition,
        piece: Piece,
        name: str,
        statics: Statics,
        calls: Calls,
        spark: SparkSession,
    ) -> None:
        self.flow = Flow(name, spark)
        self._composition, self._piece = composition, piece
        self._graph = Graph(composition)
        self._statics, self._calls = statics, calls
        self._frames: dict[str, Frame] = {}
        self._times: dict[str, str | None] = {}
        self._delays: dict[str, str | None] = {}

    # --- what a piece reads -------------------------------------------------------------------

    def read(self, name: str, carried: Carried, folder: Path) -> None:
        """A stream from a folder of its files, under the name of the node that makes it."""
        source: dict[str, Any] = {
            "event_time": carried.time,
            "watermark": carried.delay if carried.time else None,
        }
        if carried.id:
            frame = self.flow.source(
                name,
                format="parquet",
                path=folder,
                schema=carried.schema,
                options=_READING,
                id=carried.id,
                **source,
            )
        else:
            read = self.flow.spark.readStream.schema(carried.schema).options(**_READING)
            df = read.parquet(str(folder)).withColumn(POSITION, _position())
            frame = self.flow.source(name, df=df, id=POSITION, **source)
        if carried.made:
            used = () if carried.time == EVENT_TIME else (EVENT_TIME,)
            frame = frame.drop(EVENT_ID, *used)
        self._take(name, frame, carried.time, carried.delay)

    def read_outside(self, name: str) -> None:
        """What a source reads that is not a named stream."""
        node: Any = self._composition[name]
        frame = self.flow.source(
            name,
            format=node.format,
            path=node.path,
            schema=node.schema,
            options=dict(node.options),
            event_time=node.event_time,
            watermark=node.watermark,
            id=node.id or None,
            keep=node.keep,
        )
        self._take(name, frame, node.event_time, node.watermark)

    # --- what it makes ------------------------------------------------------------------------

    def build(self) -> None:
        """The frames of all nodes, inputs first."""
        for name in self._piece.nodes:
            if name in self._frames:
                continue
            node = self._composition[name]
            try:
                getattr(self, f"_{node.kind}")(name, node)
            except FlowError as error:
                raise FlowError(
                    f"node {name!r} of flow {self._composition.name!r}: {error}"
                ) from error
        self.flow.observed = steps_to_count(self._composition, self._piece.nodes, self._frames)

    def frame(self, name: str) -> Frame:
        """The rows of a node, or of `node.failures`."""
        return self._frames[name]

    def carried(self, name: str) -> Carried:
        """What the stream of a node's rows is like, once they are published."""
        frame = self._frames[name]
        time = self._times.get(name)
        own = [f for f in frame.schema.fields if f.name not in (EVENT_ID, EVENT_TIME)]
        fixed = [f"{EVENT_ID} bigint", f"{EVENT_TIME} timestamp"]
        columns = [f"`{f.name}` {f.dataType.simpleString()}" for f in own]
        kept = time in [f.name for f in own] and frame.schema[str(time)].dataType.typeName() == (
            "timestamp"
        )
        timed = name in self._delays and self._delays[name] is not None
        return Carried(
            schema=ddl(parse(", ".join([*fixed, *columns]))),
            made=True,
            id=(EVENT_ID,),
            time=time if kept else (EVENT_TIME if timed or time is not None else None),
            delay=self._delays.get(name),
        )

    # --- kinds --------------------------------------------------------------------------------

    def _filter(self, name: str, node: Filter) -> None:
        above = self._above(name)
        self._pass(name, above.filter(node.where))

    def _map(self, name: str, node: Map) -> None:
        above = self._above(name)
        kept = above.columns if "*" in node.keep else list(node.keep)
        made = [f"{text} as `{column}`" for column, text in node.columns.items()]
        names = set(node.columns)
        self._pass(name, above.selectExpr(*(f"`{c}`" for c in kept if c not in names), *made))

    def _function(self, name: str, node: Function) -> None:
        above = self._above(name)
        call = self._calls.function(node.call, name)
        function = with_static(call, {**thawed(node.static), **self._values(name)}, name)
        if node.many:
            made = above.flat_map(function, node.schema, keep=node.keep)
        else:
            made = above.map(function, node.schema, keep=node.keep, batches=node.batches)
        self._pass(name, made)

    def _static(self, name: str, node: Any) -> None:
        """A step of a workflow that a stream has reached."""
        if node.call is None or node.schema is None:
            raise FlowError("it reads a stream, so it needs call, and schema: what the call makes")
        above = self._above(name)
        call = self._calls.function(node.call, name)
        function = with_static(call, {**thawed(node.static), **self._values(name)}, name)
        self._pass(name, above.map(function, node.schema))

    def _service(self, name: str, node: Service) -> None:
        above = self._above(name)
        target = node.target if node.is_url else self._calls.function(node.target, name)
        made = above.service(
            target,
            response=node.response,
            request=None if node.request is None else _request(node.request),
            static={**thawed(node.static), **self._values(name)},
            concurrency=node.concurrency,
            retries=node.retries,
            timeout=seconds(node.timeout),
            backoff=seconds(node.backoff),
        )
        self._pass(name, made)
        if any(edge.port.output == "failures" for edge in self._graph.out[name]):
            self._pass(f"{name}.failures", made.failures, name)

    def _aggregate(self, name: str, node: Aggregate) -> None:
        above, window = self._above(name), node.window
        aggregates = [F.expr(text).alias(column) for column, text in node.columns.items()]
        by = [quoted(column) for column in node.by]
        if window.measure in ("count", "value"):
            made = _in_order_of_arrival(above, node).by(*by).agg(*aggregates)
            self._pass(name, made)
            return
        time = quoted(window.on or self._time_of(self._stream_port(name).target))
        if window.measure == "session":
            span = F.session_window(time, str(window.session)).alias("window")
        else:
            slide = None if window.slide is None else str(window.slide)
            span = F.window(time, str(window.time), slide)
        made = above.groupBy(*by, span).agg(*aggregates)
        self._take(name, made, "window", self._delay(name))

    def _merge(self, name: str, node: Merge) -> None:
        frames = [self._frames[port.target] for port in node.inputs]
        names = set(frames[0].columns)
        for port, frame in zip(node.inputs[1:], frames[1:], strict=True):
            if set(frame.columns) != names:
                raise FlowError(
                    f"port {port.name!r} has columns {', '.join(frame.columns)}, "
                    f"{node.inputs[0].name!r} has {', '.join(frames[0].columns)}; map them to the "
                    "same first"
                )
        if all(_in_order(frame) for frame in frames):
            self._pass(name, frames[0].merge(*frames[1:]))
        else:
            self._pass(name, reduce(Frame.unionByName, frames))

    def _join(self, name: str, node: Join) -> None:
        first, second = node.inputs
        made = joined(node, self._side(first), self._side(second), self._time_of)
        self._pass(name, made, first.target)

    def _match(self, name: str, node: Match) -> None:
        made = self._above(name).match(
            node.pattern,
            define=dict(node.define),
            measures=dict(node.measures),
            by=list(node.by),
            within=node.within,
            after_match=node.after_match,
            select=node.select,  # type: ignore[arg-type]
            order_by=list(node.order_by),
        )
        self._pass(name, made)

    def _sql(self, name: str, node: Sql) -> None:
        sides = {port.name: self._side(port) for port in node.inputs}
        made = self.flow.sql(node.query, **sides)  # type: ignore[arg-type]
        self._pass(name, made)

    def _sink(self, name: str, node: Sink) -> None:
        self._pass(name, self._above(name))

    # --- inner --------------------------------------------------------------------------------

    def _above(self, name: str) -> Frame:
        """The one stream that a node reads."""
        return self._frames[self._stream_port(name).target]

    def _stream_port(self, name: str) -> Port:
        for port in self._composition[name].inputs:
            if not self._statics.is_static(port.node):
                return port
        raise FlowError("no stream comes in")

    def _values(self, name: str) -> dict[str, Any]:
        """The static values that a node reads, by port."""
        found = {}
        for port in self._composition[name].inputs:
            if self._statics.is_static(port.node):
                value = self._statics.value(port.node)
                found[port.name] = value.value.toArrow() if value.is_table else value.value
        return found

    def _side(self, port: Port) -> Frame | DataFrame:
        if not self._statics.is_static(port.node):
            return self._frames[port.target]
        value = self._statics.value(port.node)
        if value.is_table:
            table: DataFrame = value.value
            return table
        try:
            return self.flow.spark.createDataFrame(value.value)
        except Exception as error:
            raise FlowError(
                f"port {port.name!r}: the value of static node {port.node!r} is no table: {error}"
            ) from error

    def _time_of(self, node: str) -> str:
        time = self._times.get(node)
        if time is None:
            raise FlowError(
                f"the events of {node!r} have no time; say event_time and watermark at the source, "
                "and keep that column on the way"
            )
        return time

    def _delay(self, name: str) -> str | None:
        return longest(self._delays.get(p.target) for p in self._composition[name].inputs)

    def _pass(self, name: str, frame: Frame, above: str | None = None) -> None:
        """Rows that keep the time of what they come from, where its column is kept."""
        if above is None:
            above = self._stream_port(name).target if name in self._composition else name
        time = self._times.get(above)
        delay = self._delay(name) if name in self._composition else self._delays.get(above)
        kept = time if time is not None and time in frame.columns else None
        self._take(name, frame, kept, delay)

    def _take(self, name: str, frame: Frame, time: str | None, delay: str | None) -> None:
        if self._is_inner(name) and not self._is_named(frame):
            with suppress(FlowError):  # what others use already keeps its name
                frame = frame.named(name)
        self._frames[name] = frame
        self._times[name] = time
        self._delays[name] = delay

    def _is_inner(self, name: str) -> bool:
        """Whether a node is a step of the flow; an end is a sink of its name."""
        node = self._composition.nodes.get(name)
        ends = {end.node for end in self._piece.outputs}
        return node is not None and node.kind not in ("source", "sink") and name not in ends

    def _is_named(self, frame: Frame) -> bool:
        """Whether rows are those of a node, which a replay shows under its name."""
        return frame.step in self.flow._named or frame.step in self.flow.sources


def _position() -> Column:
    """The number of an event in its stream: a file's name is that of its first one."""
    first = F.regexp_extract(F.col("_metadata.file_name"), r"(\d+)", 1).cast("bigint")
    return first + F.col("_metadata.row_index")


def _request(given: Any) -> Any:
    if isinstance(given, tuple | list):
        return list(given)
    return {name: F.expr(text) for name, text in given.items()}


def _in_order_of_arrival(above: Frame, node: Aggregate) -> WindowedFrame:
    window, order = node.window, tuple(node.order_by)
    if window.measure == "count":
        assert window.count is not None
        slide = window.slide if isinstance(window.slide, int) else None
        return above.count_window(window.count, slide, order_by=order)
    assert window.value is not None
    assert window.slide is not None
    return above.value_window(window.value, window.slide, str(window.on), order_by=order)


def _in_order(frame: Frame) -> bool:
    from headwater.flow.arrival import why_unordered

    return why_unordered(frame._node) is None
