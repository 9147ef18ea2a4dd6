"""Starting a flow: everything that can be refused is refused before anything is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pyspark.errors import AnalysisException

from headwater.capture.binding import bind, bind_once
from headwater.capture.checkpoint import Checkpoint
from headwater.capture.choosing import choose
from headwater.capture.damage import damaged_checkpoint
from headwater.capture.idle import Silence
from headwater.capture.listening import NOBODY, Listener
from headwater.capture.run import Run
from headwater.capture.sink import BatchInfo, CaptureSink
from headwater.errors import FlowError, RunError
from headwater.flow import nodes
from headwater.flow.jvm import scala_object, spark_jvm
from headwater.flow.reach import Unbounded
from headwater.flow.windows import microseconds
from headwater.live.parallel.graph import SpreadGraph
from headwater.live.planning import going_on, planned, resolver
from headwater.lowering import outputs as lowering
from headwater.replay.programs import remember
from headwater.session import ROCKSDB, let_go_at_exit, settings_of_query
from headwater.spark_errors import one_line
from headwater.store.embedded import EmbeddedWriter
from headwater.store.lake.place import Place, is_lake
from headwater.store.lake.writer import LakeWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from headwater.flow.flow import Flow
    from headwater.live.graph import LiveGraph
    from headwater.live.planning import Plan
    from headwater.store.batch import Resolve


def start(
    flow: Flow,
    *,
    store: str,
    checkpoint: str | None,
    capture: str | Mapping[str, Sequence[str]],
    available_now: bool,
    trigger: str | None,
    on_batch: Callable[[BatchInfo], None] | None,
    live: bool | Literal["steps"] = False,
    expiry: str | None = None,
    idle_after: str | None = None,
    muted: Callable[[str, int], bool] | None = None,
    listener: Listener = NOBODY,
) -> Run:
    """Start a flow; what a sink gives in a `muted` batch is no result of it."""
    let_go_at_exit()
    if not flow.sinks:
        raise FlowError(f"flow {flow.name!r} has no sink; end a frame in flow.sink(name, frame)")
    if available_now and trigger:
        raise RunError("give either available_now=True or trigger=, not both")
    for source in flow.sources.values():
        if source.keep == "alive":
            _require_expiry(flow, source)
    if live not in (False, True, "steps"):
        raise RunError(f"live={live!r} is not one of True, False, 'steps'")
    chosen = choose(flow, capture, live=bool(live))
    modes = {name: choice.mode for name, choice in chosen.items()}
    steps = {name: choice.steps for name, choice in chosen.items()}
    plan = None
    if live:
        by_driver = not is_lake(store)
        plan = planned(flow, chosen, expiry, steps=live == "steps", by_driver=by_driver)
    if plan is None and expiry is not None:
        raise RunError(f"expiry={expiry!r} is a rule of the live graph; add live=True")
    try:
        told = plan.told if plan else None
        outputs = lowering.lower(flow.sinks, modes, flow.spark, steps, told, flow.observed)
        if outputs.df.isStreaming:
            _check_for_streaming(outputs.df)
    except AnalysisException as error:
        hint = ""
        if "without watermark" in str(error):
            hint = "; give the source event_time= and watermark=, or stream=False to read it once"
        raise FlowError(f"flow {flow.name!r}: {one_line(error)}{hint}") from error
    if (
        outputs.df.isStreaming
        and not checkpoint
        and is_lake(store)
        and not Place.of(store).is_local
    ):
        raise RunError(
            f"{store}: Spark's checkpoint can't be on an object store; give checkpoint= a directory"
        )
    # Opening creates the store, so it comes after all that is wrong with the flow itself.
    writer = open_writer(store)
    try:
        if not outputs.df.isStreaming:
            query_id = bind_once(flow, modes, outputs, writer, plan)
            graph, resolve = _graph(plan, flow, writer, query_id)
            sink = CaptureSink(flow, outputs, writer, query_id, None, on_batch, graph, resolve)
            sink.listener = listener
            remember(writer.path, flow)
            return _run_once(flow, outputs, sink)
    except BaseException:
        writer.close()
        raise

    place = Checkpoint.at(checkpoint or str(writer.path / "checkpoints" / flow.name))

    silence = _silence(flow, plan, idle_after, available_now)

    def launch(*, once: bool) -> tuple[CaptureSink, StreamingQuery]:
        """Start the query where it stands; the sink owns the store from here on."""
        owner = open_writer(store)
        try:
            binding = bind(flow, modes, outputs, owner, place, plan)
            graph, resolve = _graph(plan, flow, owner, binding.query_id)
            in_files = () if plan is None else plan.in_files
            sink = CaptureSink(
                flow,
                outputs,
                owner,
                binding.query_id,
                place,
                on_batch,
                graph,
                resolve,
                in_files,
                muted,
            )
            sink.finishing = place.is_finishing()
            sink.silence = silence
            sink.listener = listener
            listener.began()
            query = _start_query(flow, outputs, sink, place, once or sink.finishing, trigger)
        except BaseException as error:
            listener.ended(error)
            owner.close()
            raise
        return sink, query

    class Again:
        """Starts the query again; see `Launch`."""

        def finish(self) -> None:
            if place.has_planned:
                Run(flow.name, *launch(once=True)).wait()
            place.plan_batch()
            Run(flow.name, *launch(once=True)).wait()

        def advance(self, watermark: int) -> tuple[CaptureSink, StreamingQuery]:
            if not place.has_planned:
                place.plan_batch(watermark)
            if silence is not None:
                silence.advanced()
            return launch(once=False)

    try:
        sink, query = launch(once=available_now)
    finally:
        writer.close()
    remember(writer.path, flow)
    return Run(flow.name, sink, query, Again())


def open_writer(store: str) -> EmbeddedWriter | LakeWriter:
    """Own a store, embedded or on a lake."""
    return LakeWriter.open(store) if is_lake(store) else EmbeddedWriter.open(store)


def _graph(
    plan: Plan | None, flow: Flow, writer: EmbeddedWriter | LakeWriter, query_id: str
) -> tuple[LiveGraph | SpreadGraph | None, Resolve | None]:
    """The live graph as the store left it, and what finds the sets of results that lack them."""
    if plan is None:
        return None, None
    if isinstance(writer, LakeWriter):
        return SpreadGraph(plan, flow, writer, query_id), None
    return going_on(plan, flow, writer, query_id), resolver(flow, writer, plan)


def _silence(
    flow: Flow, plan: Plan | None, idle_after: str | None, available_now: bool
) -> Silence | None:
    """What silence means for a run, refused where nothing could come of it."""
    if idle_after is None:
        return None
    if plan is None or available_now:
        raise RunError(
            f"idle_after={idle_after!r} moves the watermark of a run that goes on, by the times "
            "that a live graph knows: it needs live=True and no available_now"
        )
    known = {name: node for name, node in flow.sources.items() if name in plan.bounded}
    delays = {name: microseconds(node.watermark or "0 seconds") for name, node in known.items()}
    return Silence(microseconds(idle_after) / 1_000_000, delays)


def _require_expiry(flow: Flow, source: nodes.Source) -> None:
    """Refuse to drop records once they expire where nothing says when they do."""
    reach = flow.reach(source, list(flow.sinks.values()))
    endless = reach.unbounded
    if endless is None and (step := next(iter(reach.sessions), None)) is not None:
        endless = Unbounded(step, "how long a session lasts is not known beforehand")
    if endless is not None:
        raise RunError(
            f"source {source.name!r}: keep='alive' drops records once they expire, and none does: "
            f"{endless}; use keep='contributing' or 'all'"
        )


def _check_for_streaming(df: DataFrame) -> None:
    """Let Spark refuse now what it would refuse at the start of the query."""
    jvm = spark_jvm()
    package = jvm.org.apache.spark.sql.catalyst.analysis
    checker = scala_object(package, "UnsupportedOperationChecker")
    mode = jvm.org.apache.spark.sql.streaming.OutputMode.Append()
    checker.checkForStreaming(df._jdf.queryExecution().analyzed(), mode)


def _start_query(
    flow: Flow,
    outputs: lowering.Outputs,
    sink: CaptureSink,
    place: Checkpoint,
    available_now: bool,
    trigger: str | None,
) -> StreamingQuery:
    writer = (
        outputs.df.writeStream.queryName(f"headwater-{flow.name}")
        .outputMode("append")
        .option("checkpointLocation", str(place.path))
        .foreachBatch(sink)
    )
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif trigger:
        writer = writer.trigger(processingTime=trigger)
    try:
        with _settings(flow):
            return writer.start()
    except Exception as error:
        said = damaged_checkpoint(error, place.path) or one_line(error)
        raise RunError(f"flow {flow.name!r} did not start: {said}") from error


_SETTINGS = {
    # An aggregate that collects ids can't use Spark's compiled hash map. Sorting first needs one
    # buffer where the other way, a Java map of buffers, needs one for each group, and each costs
    # several look-ups of settings: sorting takes three quarters of its time.
    "spark.sql.execution.useObjectHashAggregateExec": "false",
    # Where two branches shuffle the same rows, Spark would let the second reuse the first's
    # exchange, and then not find the watermark above it: its state would never be evicted.
    "spark.sql.exchange.reuse": "false",
}


def _settings(flow: Flow) -> AbstractContextManager[None]:
    """Settings of a flow's query; those with steps over arrival order have stateful processors."""
    in_order = any(isinstance(n, nodes.Ordered) for s in flow.sinks.values() for n in s.upstream())
    return settings_of_query(flow.spark, {**_SETTINGS, **(ROCKSDB if in_order else {})})


def _coordinate(spark: SparkSession) -> None:
    """Have Spark's coordinator of state stores at work, which steps over arrival order look for.

    It comes with the manager of streaming queries, which a session of batch runs never asked for.
    """
    _ = spark.streams


def _run_once(flow: Flow, outputs: lowering.Outputs, sink: CaptureSink) -> Run:
    """Run a flow over batch sources: one batch, number 0. The run gives the store up."""
    sink.listener.began()
    try:
        with _settings(flow):
            _coordinate(flow.spark)
            sink(outputs.df, 0)
    except Exception as error:  # noqa: BLE001
        sink.fail(error)
    run = Run(flow.name, sink, None)
    run._raise()
    return run
