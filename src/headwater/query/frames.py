"""A lake as Spark's DataFrames: large questions, answered by jobs over its data files.

Frames are of the batches that were committed when they were asked for: whole batches, the same
ones in all of them. Answers have the rows and columns of the store's own, in no order.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from headwater.columns import quoted
from headwater.errors import HeadwaterError, PredicateError
from headwater.query import spark_records
from headwater.query.columns import Own, fixed
from headwater.query.predicate import moment
from headwater.spark_errors import one_line
from headwater.store.batch import ID, SEQ, TIME
from headwater.store.lake.scanning import scanned
from headwater.store.lake.tables import columns_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from headwater.query.predicate import Time
    from headwater.store.catalog import Catalog, Sink, Source
    from headwater.store.lake.reader import LakeReader

_RESULT = ("result_id", "event_time")
_EDGE = ("sink", "result_id", "source", "id")


class Frames:
    """The results, records and edges of a lake for Spark, as of one moment."""

    def __init__(self, reader: LakeReader, catalog: Catalog, spark: SparkSession) -> None:
        self.spark, self._reader, self._catalog = spark, reader, catalog
        # In this order: what is in the tables by then has the batches, and maybe later ones.
        rows = reader.query("SELECT coalesce(max(seq), 0) AS seq FROM batches")
        self._upto = int(rows["seq"][0].as_py())
        names = [f"result_{sink.no}" for sink in catalog.sinks]
        names += [f"record_{source.no}" for source in catalog.sources if source.kept]
        self._files = {name: reader.files(name) for name in ("edges", *names)}

    def results(
        self,
        sink: str,
        *,
        where: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
    ) -> DataFrame:
        """A sink's results: `result_id`, `event_time`, own columns.

        `where` is Spark's SQL over these columns; `since` and `until` bound the event time.
        """
        known = self._catalog.sink(sink)
        return self._chosen(known, Own([known], _RESULT), where, since, until).drop(SEQ)

    def records(self, source: str) -> DataFrame:
        """A source's records: `id`, `event_time`, own columns.

        They are those that the store keeps; of a source that it keeps none of, those that are
        there when it is read again.
        """
        known = self._catalog.source(source)
        own = Own([known], ("id", "event_time")).names(known)
        rows = self._records(known)
        return rows.select(
            F.col(ID).alias("id"),
            F.col(TIME).alias("event_time"),
            *(quoted(column).alias(name) for column, name in own.items()),
        )

    def edges(self, sink: str | None = None) -> DataFrame:
        """Pairs of a result and a record of it: `sink`, `result_id`, `source`, `id`."""
        sinks = [one for one in self._catalog.sinks if not one.is_step]
        sinks = sinks if sink is None else [self._catalog.sink(sink)]
        for one in sinks:
            _require_edges(one)
        labels = [
            self._named("sink", [(one.no, one.name) for one in sinks]),
            self._named("source", [(one.no, one.name) for one in self._catalog.sources]),
        ]
        edges = self._edges().join(F.broadcast(labels[0]), "sink_no")
        edges = edges.join(F.broadcast(labels[1]), "source_no")
        return edges.withColumnRenamed("source_id", "id").select(*_EDGE)

    def backward(
        self,
        sink: str,
        ids: Any = None,
        *,
        where: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
        columns: bool = True,
    ) -> DataFrame:
        """The records behind results: `result_id`, `source`, `id`, `event_time`, own columns.

        `ids` are some results, all by default: a list, an array, or a frame with a column
        `result_id`. The conditions are as in `results`.
        """
        known = self._catalog.sink(sink)
        _require_edges(known)
        chosen = self._chosen(known, Own([known], _RESULT), where, since, until)
        chosen = self._among(chosen, "result_id", ids).select("result_id", F.col(SEQ).alias("seq"))
        edges = self._edges().filter(F.col("sink_no") == known.no)
        edges = edges.join(chosen, ["result_id", "seq"])
        names = ("result_id", "source", "id", "event_time")
        sources = self._catalog.sources_of(known)
        own = Own(sources, names)
        parts = []
        for source in sources:
            if columns and source.is_step:
                raise HeadwaterError(
                    f"sink {sink!r} is captured in terms of the step {source.name!r}, whose rows "
                    "a replay finds: ask store.backward, or columns=False for the ids alone"
                )
            part = edges.filter(F.col("source_no") == source.no).select("result_id", "source_id")
            if columns or source.kept:
                part = self._beside(part, source, columns=columns)
            else:
                part = part.withColumn(TIME, F.lit(None).cast("timestamp"))
            kept = own.names(source).items() if columns else ()
            parts.append(
                part.select(
                    "result_id",
                    F.lit(source.name).alias("source"),
                    F.col("source_id").alias("id"),
                    F.col(TIME).alias("event_time"),
                    *(quoted(column).alias(name) for column, name in kept),
                )
            )
        fields = [field for source in sources for field in own.fields(source)] if columns else []
        return self._united(parts, pa.schema([*fixed(*names), *fields]))

    def forward(
        self,
        source: str,
        ids: Any = None,
        *,
        sink: str | None = None,
        where: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
    ) -> DataFrame:
        """The results that records reached: `id`, `sink`, `result_id`, `event_time`, own columns.

        `ids` are some records, all by default: a list, an array, or a frame with a column `id`. A
        record without a result has no row here. The conditions are on the results, as in `results`.
        """
        known = self._catalog.source(source)
        sinks = self._catalog.sinks_of(known) if sink is None else (self._catalog.sink(sink),)
        if where is not None and len(sinks) > 1:
            told = ", ".join(one.name for one in sinks)
            raise HeadwaterError(f"forward(where=...) needs sink=, one of: {told}")
        for one in sinks:
            _require_edges(one)
        edges = self._edges().filter(F.col("source_no") == known.no)
        edges = self._among(edges, "source_id", ids, "id")
        names = ("id", "sink", "result_id", "event_time")
        own = Own(sinks, names)
        parts = []
        for one in sinks:
            # A condition is over the names that the sink has on its own.
            alone = Own([one], _RESULT)
            chosen = self._chosen(one, alone, where, since, until)
            chosen = chosen.withColumnRenamed(SEQ, "seq")
            part = edges.filter(F.col("sink_no") == one.no).select("source_id", "result_id", "seq")
            part = part.join(chosen, ["result_id", "seq"])
            shown = [(alone.names(one)[column], name) for column, name in own.names(one).items()]
            parts.append(
                part.select(
                    F.col("source_id").alias("id"),
                    F.lit(one.name).alias("sink"),
                    "result_id",
                    "event_time",
                    *(quoted(given).alias(name) for given, name in shown),
                )
            )
        fields = [field for one in sinks for field in own.fields(one)]
        return self._united(parts, pa.schema([*fixed(*names), *fields]))

    def __repr__(self) -> str:
        return f"Frames({str(self._reader.place)!r}: {self._upto:,} batches)"

    def _rows(self, relation: str, own: pa.Schema | None = None) -> DataFrame:
        """A relation, of the batches that were committed."""
        form = from_arrow_schema(columns_of(relation, own), prefer_timestamp_ntz=True)
        if not (files := self._files[relation]):
            return self.spark.createDataFrame([], form)
        seq = "seq" if own is None else SEQ
        rows = scanned(self.spark, self._reader.place, files, form)
        return rows.filter(F.col(seq) <= self._upto)

    def _edges(self) -> DataFrame:
        return self._rows("edges")

    def _chosen(
        self, sink: Sink, own: Own, where: str | None, since: Time | None, until: Time | None
    ) -> DataFrame:
        """Results under the names that users know, with the batch beside them."""
        rows = self._rows(f"result_{sink.no}", sink.schema)
        rows = rows.select(
            F.col(ID).alias("result_id"),
            F.col(TIME).alias("event_time"),
            *(quoted(column).alias(name) for column, name in own.names(sink).items()),
            SEQ,
        )
        if since is not None:
            rows = rows.filter(F.col("event_time") >= F.lit(moment(since, "since")))
        if until is not None:
            rows = rows.filter(F.col("event_time") < F.lit(moment(until, "until")))
        if where is None:
            return rows
        try:
            # The line break ends a comment at the condition's end.
            return rows.filter(F.expr(f"({where}\n)"))
        except (AnalysisException, ParseException) as error:
            raise PredicateError(
                f"where={where!r} is no condition in Spark's SQL: {one_line(error)}"
            ) from error

    def _among(self, rows: DataFrame, column: str, ids: Any, given: str | None = None) -> DataFrame:
        """Rows whose id is one of some; `given` is what the column is called in a frame."""
        if ids is None:
            return rows
        if isinstance(ids, DataFrame):
            name = given or column
            if name not in ids.columns:
                raise HeadwaterError(
                    f"ids= has no column {name!r}; it has {', '.join(ids.columns)}"
                )
            wanted = ids.select(quoted(name).cast("bigint").alias(column)).distinct()
            return rows.join(wanted, column, "left_semi")
        values = ids.to_numpy() if isinstance(ids, pa.Array | pa.ChunkedArray) else ids
        try:
            numbers = np.unique(np.atleast_1d(np.asarray(values, np.int64)))
        except (TypeError, ValueError, OverflowError) as error:
            raise HeadwaterError(
                "ids= takes whole numbers: a list, an array, or a frame with a column "
                f"{given or column!r}"
            ) from error
        if not len(numbers):
            return rows.filter(F.lit(False))
        wanted = self.spark.createDataFrame(pa.table({column: numbers}))
        # The span lets Spark pass over row groups before it joins.
        span = F.col(column).between(int(numbers[0]), int(numbers[-1]))
        return rows.filter(span).join(wanted, column, "left_semi")

    def _records(self, source: Source) -> DataFrame:
        if source.kept:
            rows = self._rows(f"record_{source.no}", source.schema).drop(SEQ)
            return spark_records.unerased(self.spark, rows, source, self._reader.query)
        return spark_records.again(self.spark, source, self._reader.query)

    def _beside(self, edges: DataFrame, source: Source, *, columns: bool) -> DataFrame:
        """Edges with the records that they lead to."""
        own = source.schema.names if columns else ()
        records = self._records(source).select(ID, TIME, *map(quoted, own))
        if source.kept:
            return edges.join(records, edges["source_id"] == records[ID], "left")
        return spark_records.beside(self.spark, edges, records, source, self._reader.query)

    def _named(self, kind: str, known: Sequence[tuple[int, str]]) -> DataFrame:
        numbers, names = [no for no, _ in known], [name for _, name in known]
        table = {f"{kind}_no": pa.array(numbers, pa.int16()), kind: pa.array(names, pa.string())}
        return self.spark.createDataFrame(pa.table(table))

    def _united(self, parts: Sequence[DataFrame], schema: pa.Schema) -> DataFrame:
        """The parts under one another, null where a part has no such column."""
        form = from_arrow_schema(schema, prefer_timestamp_ntz=True)
        if not parts:
            return self.spark.createDataFrame([], form)
        aligned = [
            part.select(
                *(
                    quoted(field.name)
                    if field.name in part.columns
                    else F.lit(None).cast(field.dataType).alias(field.name)
                    for field in form
                )
            )
            for part in parts
        ]
        return reduce(DataFrame.unionAll, aligned)


def _require_edges(sink: Sink) -> None:
    """Refuse a sink whose edges are not in the store."""
    if sink.capture == "none":
        raise HeadwaterError(
            f"sink {sink.name!r} was captured with capture='none': its results have no provenance"
        )
    if sink.is_lazy:
        raise HeadwaterError(
            f"sink {sink.name!r} is captured as {sink.capture!r}, and so has no edges in the "
            "store: ask store.backward or store.forward, which replay, or capture it as 'eager'"
        )
