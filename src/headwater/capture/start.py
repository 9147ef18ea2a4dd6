"""Starting a flow: everything that can be refused is refused before anything is written."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pyspark.errors import AnalysisException

from headwater.capture.binding import bind, bind_once
from headwater.capture.checkpoint import Checkpoint
from headwater.capture.choosing import choose
from headwater.capture.idle import Silence
from headwater.capture.listening import NOBODY, Listener
from headwater.capture.run import Run
from headwater.capture.sink import BatchInfo, CaptureSink
from headwater.errors import FlowError, RunError
from headwater.flow import nodes
from headwater.flow.jvm import scala_object, spark_jvm
from headwater.flow.reach import Unbounded
from headwater.flow.windows import microseconds
from headwater.live.planning import going_on, planned, resolver
from headwater.lowering import outputs as lowering
from headwater.replay.programs import remember
from headwater.session import let_go_at_exit
from headwater.spark_errors import one_line
from headwater.store.embedded import EmbeddedWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from headwater.flow.flow import Flow
    from headwater.live.planning import Plan


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
    plan = planned(flow, chosen, expiry, steps=live == "steps") if live else None
    if plan is None and expiry is not None:
        raise RunError(f"expiry={expiry!r} is a rule of the live graph; add live=True")
    try:
        told = plan.told if plan else None
        outputs = lowering.lower(flow.sinks, modes, flow.spark, steps, told, flow.observed)
        if outputs.df.isStreaming:
            _check_for_streaming(outputs.df)
    except AnalysisException as error:
        raise FlowError(f"flow {flow.name!r}: {one_line(error)}") from error
    # Opening creates the store, so it comes after all that is wrong with the flow itself.
    writer = EmbeddedWriter.open(store)
    try:
        if not outputs.df.isStreaming:
            query_id = bind_once(flow, modes, outputs, writer, plan)
            graph = None if plan is None else going_on(plan, flow, writer, query_id)
            resolve = resolver(flow, writer, plan)
            sink = CaptureSink(flow, outputs, writer, query_id, None, on_batch, graph, resolve)
            sink.listener = listener
            remember(store, flow)
            return _run_once(flow, outputs, sink)
    except BaseException:
        writer.close()
        raise

    place = Checkpoint.at(checkpoint or str(Path(store) / "checkpoints" / flow.name))

    silence = _silence(flow, plan, idle_after, available_now)

    def launch(*, once: bool) -> tuple[CaptureSink, StreamingQuery]:
        """Start the query where it stands; the sink owns the store from here on."""
        owner = EmbeddedWriter.open(store)
        try:
            binding = bind(flow, modes, outputs, owner, place, plan)
            graph = None if plan is None else going_on(plan, flow, owner, binding.query_id)
            resolve = resolver(flow, owner, plan)
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
    remember(store, flow)
    return Run(flow.name, sink, query, Again())


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
        raise RunError(f"flow {flow.name!r} did not start: {one_line(error)}") from error


_SETTINGS = {
    # An aggregate that collects ids can't use Spark's compiled hash map. Sorting first needs one
    # buffer where the other way, a Java map of buffers, needs one for each group, and each costs
    # several look-ups of settings: sorting takes three quarters of its time.
    "spark.sql.execution.useObjectHashAggregateExec": "false",
    # Where two branches shuffle the same rows, Spark would let the second reuse the first's
    # exchange, and then not find the watermark above it: its state would never be evicted.
    "spark.sql.exchange.reuse": "false",
}


_IN_ORDER = {
    # The only state store that stateful processors have.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # A micro-batch writes down what changed, instead of the whole store.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""Settings for flows with steps over arrival order."""


@contextmanager
def _settings(flow: Flow) -> Iterator[None]:
    """Settings that a query takes over at its start; the session gets its own back."""
    spark = flow.spark
    in_order = any(isinstance(n, nodes.Ordered) for s in flow.sinks.values() for n in s.upstream())
    settings = {**_SETTINGS, **(_IN_ORDER if in_order else {})}
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def _run_once(flow: Flow, outputs: lowering.Outputs, sink: CaptureSink) -> Run:
    """Run a flow over batch sources: one batch, number 0. The run gives the store up."""
    sink.listener.began()
    try:
        with _settings(flow):
            sink(outputs.df, 0)
    except Exception as error:  # noqa: BLE001
        sink.fail(error)
    run = Run(flow.name, sink, None)
    run._raise()
    return run
