"""Starting a flow: everything that can be refused is refused before anything is written."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from headwater.capture.binding import bind, bind_once
from headwater.capture.checkpoint import Checkpoint
from headwater.capture.choosing import choose
from headwater.capture.run import Run
from headwater.capture.sink import BatchInfo, CaptureSink
from headwater.errors import FlowError, RunError
from headwater.flow import nodes
from headwater.flow.jvm import scala_object, spark_jvm
from headwater.lowering import outputs as lowering
from headwater.replay.programs import remember
from headwater.spark_errors import one_line
from headwater.store.embedded import EmbeddedWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from headwater.flow.flow import Flow


def start(
    flow: Flow,
    *,
    store: str,
    checkpoint: str | None,
    capture: str | Mapping[str, Sequence[str]],
    available_now: bool,
    trigger: str | None,
    on_batch: Callable[[BatchInfo], None] | None,
) -> Run:
    """Start a flow."""
    if not flow.sinks:
        raise FlowError(f"flow {flow.name!r} has no sink; end a frame in flow.sink(name, frame)")
    if available_now and trigger:
        raise RunError("give either available_now=True or trigger=, not both")
    chosen = choose(flow, capture)
    modes = {name: choice.mode for name, choice in chosen.items()}
    steps = {name: choice.steps for name, choice in chosen.items()}
    try:
        outputs = lowering.lower(flow.sinks, modes, flow.spark, steps)
        if outputs.df.isStreaming:
            _check_for_streaming(outputs.df)
    except AnalysisException as error:
        raise FlowError(f"flow {flow.name!r}: {one_line(error)}") from error
    # Opening creates the store, so it comes after all that is wrong with the flow itself.
    writer = EmbeddedWriter.open(store)
    try:
        if not outputs.df.isStreaming:
            query_id = bind_once(flow, modes, outputs, writer)
            sink = CaptureSink(flow, outputs, writer, query_id, None, on_batch)
            query = None
        else:
            place = Checkpoint.at(checkpoint or str(Path(store) / "checkpoints" / flow.name))
            binding = bind(flow, modes, outputs, writer, place)
            sink = CaptureSink(flow, outputs, writer, binding.query_id, place, on_batch)
            query = _start_query(flow, outputs, sink, place, available_now, trigger)
    except BaseException:
        writer.close()
        raise
    remember(store, flow)
    if query is None:
        return _run_once(flow, outputs, sink)
    return Run(flow.name, sink, query)


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
    try:
        with _settings(flow):
            sink(outputs.df, 0)
    except Exception as error:  # noqa: BLE001
        sink.fail(error)
    run = Run(flow.name, sink, None)
    run._raise()
    return run
