"""A run of a flow: checks before the start, the streaming query, and its end."""

from __future__ import annotations

import hashlib
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException

from headwater.capture.checkpoint import Binding, Checkpoint
from headwater.capture.register import registration
from headwater.capture.sink import CaptureSink
from headwater.errors import FlowError, HeadwaterError, RunError
from headwater.flow.jvm import scala_object, spark_jvm
from headwater.lowering import outputs as lowering
from headwater.spark_errors import one_line
from headwater.store.embedded import EmbeddedWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from headwater.flow.flow import Flow

CAPTURES = ("none", "eager", "auto")


@dataclass(frozen=True, slots=True)
class BatchInfo:
    """What a committed micro-batch brought to the store."""

    batch: int
    watermark: datetime | None
    results: int
    edges: int
    records: int


class Run:
    """A flow at work. `wait()` until it ends, `stop()` to end it; also a context manager."""

    def __init__(self, flow: str, sink: CaptureSink, query: StreamingQuery | None) -> None:
        self.flow = flow
        self.query = query
        self._sink = sink
        self._ended = threading.Event()
        if query is None:
            self._end()
        else:
            threading.Thread(target=self._watch, name=f"headwater-{flow}", daemon=True).start()

    @property
    def active(self) -> bool:
        """Whether the run goes on."""
        return not self._ended.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most `timeout` seconds; True when it has ended. Raises its error."""
        ended = self._ended.wait(timeout)
        if ended:
            self._raise()
        return ended

    def stop(self) -> None:
        """End the run after the batch at hand; a later start goes on from there."""
        self._stop()
        self.wait()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        self._stop()
        self._ended.wait()
        if kind is None:
            self._raise()

    def _stop(self) -> None:
        if self.query is not None and self.active:
            self._sink.take_no_more()
            self.query.stop()

    def _watch(self) -> None:
        assert self.query is not None
        try:
            self.query.awaitTermination()
        except Exception as error:  # noqa: BLE001
            self._sink.fail(error)
        finally:
            self._end()

    def _end(self) -> None:
        try:
            self._sink.close()
        finally:
            self._ended.set()

    def _raise(self) -> None:
        failure = self._sink.failure
        if failure is None:
            return
        if isinstance(failure, HeadwaterError):
            raise failure
        raise RunError(f"flow {self.flow!r} failed: {one_line(failure)}") from failure

    def __repr__(self) -> str:
        return f"Run({self.flow!r}, {'active' if self.active else 'ended'})"


def start(
    flow: Flow,
    *,
    store: str,
    checkpoint: str | None,
    capture: str,
    available_now: bool,
    trigger: str | None,
    on_batch: Callable[[BatchInfo], None] | None,
) -> Run:
    """Start a flow; everything that can be refused is refused before anything is written."""
    if not flow.sinks:
        raise FlowError(f"flow {flow.name!r} has no sink; end a frame in flow.sink(name, frame)")
    if capture not in CAPTURES:
        raise RunError(f"capture={capture!r} is not one of {', '.join(CAPTURES)}")
    if available_now and trigger:
        raise RunError("give either available_now=True or trigger=, not both")
    mode = "eager" if capture == "auto" else capture
    try:
        outputs = lowering.lower(flow.sinks, mode, flow.spark)
        if outputs.df.isStreaming:
            _check_for_streaming(outputs.df)
    except AnalysisException as error:
        raise FlowError(f"flow {flow.name!r}: {one_line(error)}") from error
    # Opening creates the store, so it comes after all that is wrong with the flow itself.
    writer = EmbeddedWriter.open(store)
    try:
        if not outputs.df.isStreaming:
            return _run_once(flow, outputs, writer, mode, on_batch)
        place = Checkpoint.at(checkpoint or str(Path(store) / "checkpoints" / flow.name))
        binding = _bind(flow, mode, outputs, writer, place)
        sink = CaptureSink(flow, outputs, writer, binding.query_id, place, on_batch)
        query = _start_query(flow, outputs, sink, place, available_now, trigger)
    except BaseException:
        writer.close()
        raise
    return Run(flow.name, sink, query)


def _check_for_streaming(df: DataFrame) -> None:
    """Let Spark refuse now what it would refuse at the start of the query."""
    jvm = spark_jvm()
    package = jvm.org.apache.spark.sql.catalyst.analysis
    checker = scala_object(package, "UnsupportedOperationChecker")
    mode = jvm.org.apache.spark.sql.streaming.OutputMode.Append()
    checker.checkForStreaming(df._jdf.queryExecution().analyzed(), mode)


def _bind(
    flow: Flow,
    mode: str,
    outputs: lowering.Outputs,
    writer: EmbeddedWriter,
    place: Checkpoint,
) -> Binding:
    """Make sure that flow, store and checkpoint belong together, then write it down in both."""
    known = next((row for row in writer.flows() if row["flow"] == flow.name), None)
    bound = known["query_id"] if known else None
    last = writer.last_batch(bound) if bound else None
    binding = place.bind(flow.name, writer.store_id, bound, last)
    print_ = fingerprint(flow, mode)
    if known and last is not None:
        _require_same(flow.name, known, mode, print_)
    writer.register(
        registration(flow, outputs, mode, binding.query_id, str(place.path), json.dumps(print_))
    )
    place.write(binding)
    return binding


def _require_same(flow: str, known: dict[str, Any], mode: str, now: dict[str, Any]) -> None:
    if known["capture"] != mode:
        raise RunError(
            f"flow {flow!r} was started with capture={known['capture']!r} and can't go on with "
            f"{mode!r}: its state has another shape; start with a new store and checkpoint"
        )
    before = json.loads(known["fingerprint"])
    changed = [s for s in {**before, **now} if before.get(s) != now.get(s)]
    if changed:
        raise RunError(
            f"flow {flow!r} has changed since its checkpoint was made, in {', '.join(changed)}; "
            "its state can't be carried over: start with a new store and checkpoint"
        )


def fingerprint(flow: Flow, mode: str) -> dict[str, str]:
    """What a checkpoint's state depends on: the sinks and their stateful steps, each in short."""
    stateful = ("source", "aggregate", "join", "deduplicate", "watermark")
    out: dict[str, str] = {}
    for sink in flow.sinks.values():
        columns = flow._plain.lower(sink).schema.simpleString()
        out[f"sink {sink.name}"] = hashlib.sha256(columns.encode()).hexdigest()[:16]
        for node in sink.upstream():
            if node.kind in stateful:
                # A source may move; what its rows and ids are may not.
                what = repr(node.identity) if node.kind == "source" else node.describe()  # type: ignore[attr-defined]
                out[f"{node.kind} {node.step}"] = hashlib.sha256(what.encode()).hexdigest()[:16]
    return out


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
        with _settings(flow.spark):
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


@contextmanager
def _settings(spark: SparkSession) -> Iterator[None]:
    """Settings that a query takes over at its start; the session gets its own back."""
    before = {name: spark.conf.get(name, None) for name in _SETTINGS}
    for name, value in _SETTINGS.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def _run_once(
    flow: Flow,
    outputs: lowering.Outputs,
    writer: EmbeddedWriter,
    mode: str,
    on_batch: Callable[[BatchInfo], None] | None,
) -> Run:
    """Run a flow over batch sources: one batch, number 0."""
    query_id = f"once-{flow.name}"
    if writer.holds(query_id, 0):
        raise RunError(
            f"the store holds the results of flow {flow.name!r} already and its sources do not "
            "stream; start with a new store to run it again"
        )
    prints = json.dumps(fingerprint(flow, mode))
    writer.register(registration(flow, outputs, mode, query_id, "", prints))
    sink = CaptureSink(flow, outputs, writer, query_id, None, on_batch)
    try:
        with _settings(flow.spark):
            sink(outputs.df, 0)
    except Exception as error:  # noqa: BLE001
        sink.fail(error)
    run = Run(flow.name, sink, None)
    run._raise()
    return run
