"""One plan for a whole flow: the rows of every sink, tagged and united.

One streaming query runs them all, so that all sinks of a micro-batch commit together. A flow
with one sink and nothing to keep has just that sink's plan. Sources whose records' contents
are kept add a branch that holds the records themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headwater.columns import identity_hash, quoted
from headwater.flow import nodes
from headwater.lowering.eager import KEY, TIME, Eager, Traced, origin
from headwater.lowering.plain import Plain
from headwater.lowering.rows import nullable

OUTPUT = "__hw_output"
ID = "__hw_id"
CONTENT = "__hw_content"
PAYLOAD = "__hw_payload_"


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of row in the united plan: a sink's results or a source's records."""

    kind: Literal["results", "records"]
    name: str
    schema: StructType
    origins: tuple[str, ...]
    unique: bool
    event_time: str | None = None
    """Without capture: the column that Spark marks as event time, if any is left."""


@dataclass(frozen=True, slots=True)
class Outputs:
    """The united plan and what its rows are; `tagged` says that rows carry their part's number."""

    df: DataFrame
    parts: tuple[Part, ...]
    tagged: bool
    still: tuple[tuple[Part, DataFrame], ...] = ()
    """Records to keep of sources that do not stream beside others that do."""


def lower(flow_sinks: dict[str, nodes.Sink], capture: str, spark: SparkSession) -> Outputs:
    """The united plan of some sinks in one capture mode."""
    sources = {
        node.name: node
        for sink in flow_sinks.values()
        for node in sink.upstream()
        if isinstance(node, nodes.Source)
    }
    eager = Eager(spark)
    kept = {name: eager.lower(node) for name, node in sources.items() if node.keep != "none"}
    branches: list[tuple[Part, DataFrame]] = []
    if capture == "none":
        # The kept records' branch must share each source's watermark node with the sinks.
        shared = {name: rows.df.drop(*rows.annotations) for name, rows in kept.items()}
        plain = Plain(spark, shared)
        branches.extend(_plain_results(sink, plain) for sink in flow_sinks.values())
    else:
        branches.extend(_traced_results(sink, eager) for sink in flow_sinks.values())
    records = [_records(sources[name], rows) for name, rows in kept.items()]
    streaming = any(df.isStreaming for _, df in branches)
    branches.extend(pair for pair in records if pair[1].isStreaming == streaming)
    still = tuple(pair for pair in records if pair[1].isStreaming != streaming)
    if len(branches) == 1:
        part, df = branches[0]
        return Outputs(df, (part,), tagged=False, still=still)
    parts = tuple(part for part, _ in branches)
    return Outputs(_united(branches), parts, tagged=True, still=still)


def _plain_results(sink: nodes.Sink, plain: Plain) -> tuple[Part, DataFrame]:
    df = plain.lower(sink)
    marked = [f.name for f in df.schema.fields if "spark.watermarkDelayMs" in (f.metadata or {})]
    event_time = marked[0] if marked else None
    return Part("results", sink.name, nullable(df.schema), (), False, event_time), df


def _traced_results(sink: nodes.Sink, eager: Eager) -> tuple[Part, DataFrame]:
    rows = eager.lower(sink)
    fixed = [
        F.xxhash64(F.lit(sink.name), KEY).alias(ID),
        F.col(TIME),
        *(_as_array(rows, source) for source in rows.origins),
    ]
    df = rows.df.select(*fixed, *map(quoted, rows.columns))
    own = nullable(StructType([rows.df.schema[c] for c in rows.columns]))
    return Part("results", sink.name, own, tuple(rows.origins), rows.unique), df


def _as_array(rows: Traced, source: str) -> Column:
    column = quoted(origin(source))
    if rows.origins[source]:
        return column
    return F.when(column.isNotNull(), F.array(column)).alias(origin(source))


def _records(source: nodes.Source, rows: Traced) -> tuple[Part, DataFrame]:
    own = nullable(StructType([rows.df.schema[c] for c in rows.columns]))
    df = rows.df.select(
        quoted(origin(source.name)).alias(ID),
        F.col(TIME),
        identity_hash(own.fields).alias(CONTENT),
        *map(quoted, rows.columns),
    )
    return Part("records", source.name, own, (), False), df


def _united(branches: list[tuple[Part, DataFrame]]) -> DataFrame:
    """All branches in one shape: the part's number, the fixed columns, a struct for each part."""
    origins = sorted({source for part, _ in branches for source in part.origins})
    fixed = {ID: "bigint", CONTENT: "bigint", **{origin(s): "array<bigint>" for s in origins}}

    def shaped(number: int, part: Part, df: DataFrame) -> DataFrame:
        def or_null(name: str, spark_type: str) -> Column:
            there = name in df.columns
            return quoted(name) if there else F.lit(None).cast(spark_type).alias(name)

        def payload(other: int) -> Column:
            schema = branches[other][0].schema
            own = F.struct(*map(quoted, schema.fieldNames())) if other == number else F.lit(None)
            return own.cast(schema).alias(f"{PAYLOAD}{other}")

        time = or_null(TIME, "timestamp")
        return df.select(
            F.lit(number).alias(OUTPUT),
            *(or_null(name, spark_type) for name, spark_type in fixed.items()),
            time,
            *(payload(other) for other in range(len(branches))),
        )

    frames = [shaped(number, part, df) for number, (part, df) in enumerate(branches)]
    return reduce(DataFrame.union, frames)
