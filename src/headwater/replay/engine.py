"""The lazy engine: a slice of the sources, the flow run over it in batch, and what came of it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater.columns import FEW_VALUES, quoted, with_ids
from headwater.errors import StoreError, UnsupportedError
from headwater.flow import nodes
from headwater.flow.determinism import why_not
from headwater.flow.expressions import unaliased
from headwater.flow.jvm import sequence
from headwater.flow.watermarks import is_streaming
from headwater.lowering.eager import as_array, origin
from headwater.lowering.outputs import ID, result_id
from headwater.names import KEY, PREFIX, RECORD
from headwater.names import TIME as TIMED
from headwater.replay import programs, shape
from headwater.replay.columns import aggregate_key
from headwater.replay.fates import numbered
from headwater.replay.lowering import Lateness, Question, Replayed
from headwater.replay.reading import Past, Reading, Slices
from headwater.replay.schedule import Schedule
from headwater.replay.slicing import HIGH, LOW, TIME, Slice, slices
from headwater.session import adopt_or_start
from headwater.spark_errors import one_line
from headwater.store.batch import BASE, SEQ
from headwater.store.batch import ID as STORED_ID
from headwater.store.batch import TIME as STORED_TIME
from headwater.store.schema import quoted as sql_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from headwater.lowering.traced import Traced
    from headwater.store.catalog import Catalog, Sink
    from headwater.store.reader import Located

Ids = npt.NDArray[np.int64]

_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


@dataclass(frozen=True, slots=True)
class Replay:
    """A flow made ready to run again over slices of its sources, for results of one sink."""

    node: nodes.Sink
    lowering: Replayed

    @property
    def rows(self) -> Traced:
        """The sink's rows, with ids and sets."""
        rows = self.lowering.lower(self.node)
        return rows.with_df(rows.df.withColumn(ID, result_id(self.node)))

    def to(self, step: str) -> Replay:
        """The same, in terms of the rows of a step."""
        lowering = self.lowering
        question = replace(lowering.question, to=step)
        return Replay(self.node, Replayed(lowering.sources, lowering.lateness, question))

    def rows_of(self, step: str, keys: Ids) -> DataFrame:
        """The rows of a step, by their keys."""
        node = next(above for above in self.node.upstream() if above.step == step)
        return with_ids(self.lowering.lower(node).df, KEY, keys)


class Engine:
    """Replays of a store's flows."""

    def __init__(self, reader: Located, catalog: Catalog) -> None:
        self._reader = reader
        self.catalog = catalog
        self._sinks: dict[str, programs.Sinks] = {}
        self.rows_read = 0
        """How many rows of source files the latest replay took in."""

    def sets(
        self, sink: Sink, result_ids: Sequence[int] | Ids, *, to: str | None = None
    ) -> pa.Table:
        """The edges of results: `result_id`, `source` (or the step `to`), `source_id`."""
        tables = [self._sets(sink, asked, to) for asked in self._by_query(sink, result_ids)]
        schema = pa.schema([("result_id", pa.int64()), ("source", pa.string())])
        schema = schema.append(pa.field("source_id", pa.int64()))
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def step_rows(self, sink: Sink, result_ids: Ids, step: str, keys: Ids) -> pa.Table:
        """Rows of a step that some results came from, by key: `id`, `event_time`, own columns.

        The own ones may have these names too.
        """
        tables = []
        for asked in self._by_query(sink, result_ids):
            with explained(sink):
                rows = self.replay(sink, asked).rows_of(step, keys).dropDuplicates([KEY])
                df = numbered(rows)
                own = [quoted(c) for c in df.columns if not c.startswith(PREFIX)]
                shown = df.select(F.col(KEY).alias("id"), F.col(TIMED).alias("event_time"), *own)
                tables.append(shown.toArrow())
        return pa.concat_tables(tables)

    def _by_query(self, sink: Sink, result_ids: Sequence[int] | Ids) -> list[pa.Table]:
        """What is known of some results, those of each streaming query apart."""
        asked = self.asked(sink, result_ids)
        return [
            asked.filter(pc.equal(asked["query_id"], query_id))
            for query_id in pc.unique(asked["query_id"]).to_pylist()
        ]

    def asked(self, sink: Sink, result_ids: Sequence[int] | Ids) -> pa.Table:
        """What the store knows of some results: ids, time, batch, intervals, own columns."""
        own = "".join(
            f", r.{sql_name(name)} AS {sql_name('own ' + name)}" for name in sink.schema.names
        )
        ids = np.asarray(result_ids, np.int64)
        rows = self._reader.query(
            f"SELECT r.{STORED_ID} AS result_id, coalesce(r.{BASE}, r.{STORED_ID}) AS base, "
            f"epoch_us(r.{STORED_TIME}) AS {TIME}, b.query_id, b.batch{own} "
            f"FROM result_{sink.no} r JOIN batches b ON r.{SEQ} = b.seq "
            f"WHERE r.{STORED_ID} IN (SELECT unnest(?::BIGINT[]))",
            [ids.tolist()],
        )
        if sink.capture != "intervals":
            return rows
        spans = self._reader.query(
            f"SELECT result_id, source_no, low, high FROM spans WHERE sink_no = {sink.no} "
            "AND result_id IN (SELECT unnest(?::BIGINT[]))",
            [ids.tolist()],
        )
        for source in self.catalog.sources_of(sink):
            mine = spans.filter(pc.equal(spans["source_no"], source.no))
            places = pc.index_in(rows["result_id"], mine["result_id"])
            for name, column in ((LOW, "low"), (HIGH, "high")):
                rows = rows.append_column(name + source.name, mine[column].take(places))
        return rows

    def replay(
        self,
        sink: Sink,
        asked: pa.Table,
        *,
        to: str | None = None,
        alone: Mapping[str, Ids] | None = None,
    ) -> Replay:
        """A flow made ready to run again for some results of a sink, all of one query.

        `alone` has ids of records by source, which then are all that it runs over.
        """
        node = self.node(sink)
        require_deterministic(sink, node)
        if to is not None and all(to != above.step for above in node.upstream()):
            steps = ", ".join(n.step for n in node.upstream() if n is not node)
            raise StoreError(f"sink {sink.name!r} has no step {to!r} above it; it has: {steps}")
        query_id = asked["query_id"][0].as_py()
        until = int(pc.max(asked["batch"]).as_py())
        readings = self.readings(sink, query_id, until, slices(node, sink.capture, asked))
        if alone is not None:
            readings = {
                name: replace(reading, df=with_ids(reading.df, RECORD, alone.get(name, ())))
                for name, reading in readings.items()
            }
        deciding = shape.deciding(node) if alone is None else ()
        survivors = frozenset(dedup.step for dedup in deciding)
        question = Question(to=to, survivors=survivors, only=_only(node, asked))
        lateness = self.lateness(node, query_id, until, readings)
        return Replay(node, Replayed(Slices(readings), lateness, question))

    def readings(
        self, sink: Sink, query_id: str, until: int, parts: Mapping[str, Slice]
    ) -> dict[str, Reading]:
        """A slice of each source of a sink, of what a query had read by the end of a batch."""
        past = Past(_own_session(), self._reader, query_id, until)
        return {
            above.name: past.read(
                above, self.catalog.source(f"{sink.flow}/{above.name}"), parts[above.name]
            )
            for above in self.node(sink).upstream()
            if isinstance(above, nodes.Source)
        }

    def node(self, sink: Sink) -> nodes.Sink:
        """The node of a sink, from the flow at hand or from the store."""
        if sink.flow not in self._sinks:
            self._sinks[sink.flow] = self._load(sink.flow, self._reader.path)
        sinks = self._sinks[sink.flow]
        if sink.name not in sinks:
            raise StoreError(f"flow {sink.flow!r} has no sink {sink.name!r} any more")
        return sinks[sink.name]

    def use(self, flow: Any) -> None:
        """Take a flow as it is here, instead of what the store has of it."""
        self._sinks[flow.name] = dict(flow.sinks)

    def _load(self, flow: str, store: Path) -> programs.Sinks:
        if (here := programs.at_hand(store, flow)) is not None:
            return dict(here.sinks)
        rows = self._reader.query("SELECT program FROM flows WHERE flow = ?", [flow])
        program = rows["program"][0].as_py() if rows.num_rows else None
        if program is None:
            raise StoreError(
                f"the store has no copy of flow {flow!r} to replay: open it with the flow itself, "
                "headwater.open(path, flow=flow)"
            )
        return programs.loaded(program, store, flow)

    def lateness(
        self, node: nodes.Sink, query_id: str, until: int, readings: Mapping[str, Reading]
    ) -> Lateness | None:
        """A query's watermarks up to a batch; None where nothing streams and so nothing is late."""
        if not is_streaming(node):
            return None
        rows = self._reader.query(
            "SELECT coalesce(epoch_ms(watermark), 0) AS w FROM batches "
            "WHERE query_id = ? AND batch <= ? ORDER BY batch",
            [query_id, until],
        )
        firsts = [r.first_batch for r in readings.values() if r.first_batch is not None]
        return Lateness(Schedule(tuple(rows["w"].to_pylist())), min(firsts, default=0))

    def _sets(self, sink: Sink, asked: pa.Table, to: str | None) -> pa.Table:
        replay = self.replay(sink, asked, to=to)
        with explained(sink):
            rows = replay.rows
            only = with_ids(rows.df, ID, asked["base"].to_numpy())
            sources = tuple(rows.origins)
            df = only.select(ID, *(as_array(rows, source) for source in sources))
            found = df.toArrow()
            self.rows_read = _rows_read(df)
        _require_all(sink, asked, found)
        tables = []
        for source in sources:
            sets = found[origin(source)].combine_chunks()
            parents = pc.list_parent_indices(sets)
            pairs = pa.table({"base": found[ID].take(parents), "source_id": sets.flatten()})
            pairs = pairs.group_by(["base", "source_id"]).aggregate([])
            of = asked.select(["result_id", "base"]).join(pairs, "base", join_type="inner")
            name = pa.repeat(pa.scalar(source), of.num_rows)
            tables.append(
                pa.table(
                    {"result_id": of["result_id"], "source": name, "source_id": of["source_id"]}
                )
            )
        return pa.concat_tables(tables)


def require_deterministic(sink: Sink, node: nodes.Sink) -> None:
    """Refuse to replay a flow that may decide otherwise when it is run again."""
    for above in node.upstream():
        if (why := why_not(above)) is not None:
            raise UnsupportedError(
                f"sink {sink.name!r} can't be replayed: {above.kind} step {above.step!r} at "
                f"{above.site}: {why}"
            )


@contextmanager
def explained(sink: Sink) -> Iterator[None]:
    """What Spark says about a replay, in one line."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise StoreError(f"replaying sink {sink.name!r} failed: {one_line(error)}") from error


def _rows_read(df: DataFrame) -> int:
    """The rows that came out of the files' readers when a frame was collected."""
    scans = sequence(df._jdf.queryExecution().executedPlan().collectLeaves())
    read = 0
    for scan in scans:
        metric = scan.metrics().get("numOutputRows")
        if scan.nodeName().startswith("Scan") and metric.isDefined():
            read += int(metric.get().value())
    return read


def _require_all(sink: Sink, asked: pa.Table, found: pa.Table) -> None:
    missing = np.setdiff1d(asked["base"].to_numpy(), found[ID].to_numpy())
    if len(missing):
        raise StoreError(
            f"sink {sink.name!r}: result {missing[0]} did not come out of its replay: the source "
            "or the flow's code has changed since; capture='eager' keeps sets beside results"
        )


def _own_session() -> SparkSession:
    """A session with the settings of the user's, and some for short batch queries."""
    active = adopt_or_start()
    own = SparkSession(active.sparkContext, active._jsparkSession.cloneSession())
    for name, value in _SETTINGS.items():
        own.conf.set(name, value)
    return own


def _only(node: nodes.Sink, asked: pa.Table) -> dict[str, Column]:
    """The groups of the last aggregate that the asked results are, as far as they show their keys.

    Spark pushes such a condition below other steps, down to the source where that is right.
    """
    conditions: dict[str, Column] = {}
    for name in asked.column_names:
        if not name.startswith("own "):
            continue
        found = aggregate_key(node, name.removeprefix("own "))
        kind = asked.schema.field(name).type
        plain = pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind)
        if found is None or not plain or asked[name].null_count:
            continue
        values = pc.unique(asked[name]).to_pylist()
        if len(values) <= FEW_VALUES:
            step, at = found
            condition = unaliased(step.keys[at]).isin(values)
            known = conditions.get(step.step)
            conditions[step.step] = condition if known is None else known & condition
    return conditions
