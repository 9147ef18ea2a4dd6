"""`plain`: the very plan that the user would have written, with no provenance."""

from __future__ import annotations

import os
from functools import reduce
from typing import TYPE_CHECKING, ClassVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater.columns import identity_hash, quoted
from headwater.errors import FlowError
from headwater.flow.expressions import Expr
from headwater.flow.kafka import Topics
from headwater.flow.sourcing import FILE_FORMATS
from headwater.lowering import groups, kafka, shapes
from headwater.lowering.base import Lowering
from headwater.lowering.functions import mapped, serviced
from headwater.lowering.rows import flat_mapped
from headwater.spark_errors import one_line
from headwater.spelling import guess

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.flow import nodes


class Plain(Lowering[DataFrame]):
    """Nodes to DataFrames, step by step."""

    name: ClassVar[str] = "none"

    def __init__(self, spark: SparkSession) -> None:
        super().__init__()
        self.spark = spark
        self.sources: dict[str, DataFrame] = {}
        """Frames of sources that are read already."""

    def counted(self, made: DataFrame, name: str) -> DataFrame:
        return counted(made, name)

    def visit_source(self, node: nodes.Source) -> DataFrame:
        if node.name in self.sources:
            return self.sources[node.name]
        return watermarked(read(self.spark, node), node)

    def visit_static(self, node: nodes.Static) -> DataFrame:
        return node.df

    def visit_filter(self, node: nodes.Filter, df: DataFrame) -> DataFrame:
        return df.filter(node.condition.column)

    def visit_project(self, node: nodes.Project, df: DataFrame) -> DataFrame:
        return df.select(*(c.column for c in node.columns))

    def visit_with_columns(self, node: nodes.WithColumns, df: DataFrame) -> DataFrame:
        return df.withColumns({name: expr.column for name, expr in node.columns})

    def visit_rename(self, node: nodes.Rename, df: DataFrame) -> DataFrame:
        return df.withColumnsRenamed(dict(node.names))

    def visit_drop(self, node: nodes.Drop, df: DataFrame) -> DataFrame:
        return df.drop(*(c.column for c in node.columns))

    def visit_alias(self, node: nodes.Alias, df: DataFrame) -> DataFrame:
        return df.alias(node.name)

    def visit_watermark(self, node: nodes.Watermark, df: DataFrame) -> DataFrame:
        return df.withWatermark(node.column, node.delay)

    def visit_explode(self, node: nodes.Explode, df: DataFrame) -> DataFrame:
        return df.select(*(c.column for c in node.columns))

    def visit_flat_map(self, node: nodes.FlatMap, df: DataFrame) -> DataFrame:
        rows = flat_mapped(df, node, df.columns, carry=())
        return rows.select(*map(quoted, node.keep), *map(quoted, node.schema.fieldNames()))

    def visit_map(self, node: nodes.Map, df: DataFrame) -> DataFrame:
        return mapped(df, node, df.columns, carry=())

    def visit_service(self, node: nodes.Service, df: DataFrame) -> DataFrame:
        return serviced(df, node, identity_hash(df.schema.fields))

    def visit_union(self, node: nodes.Union, left: DataFrame, right: DataFrame) -> DataFrame:
        if node.by_name:
            return left.unionByName(right, allowMissingColumns=node.allow_missing)
        return left.union(right)

    def visit_aggregate(self, node: nodes.Aggregate, df: DataFrame) -> DataFrame:
        keys, columns = (e.column for e in node.keys), (e.column for e in node.columns)
        return df.groupBy(*keys).agg(*columns)

    def visit_group_function(self, node: nodes.GroupFunction, df: DataFrame) -> DataFrame:
        return groups.applied_plainly(node, df)

    def visit_join(self, node: nodes.Join, left: DataFrame, right: DataFrame) -> DataFrame:
        return joined(node, left, right)

    def visit_deduplicate(self, node: nodes.Deduplicate, df: DataFrame) -> DataFrame:
        return deduplicated(node, df, list(node.columns) if node.columns else None)

    def visit_merge(self, node: nodes.Merge, *branches: DataFrame) -> DataFrame:
        return reduce(DataFrame.unionByName, branches)

    # What Spark lacks: its shape only. A flow that has some runs by a tracing lowering.

    def visit_count_window(self, node: nodes.CountWindow, df: DataFrame) -> DataFrame:
        return shapes.windows_shape(node, df)

    def visit_value_window(self, node: nodes.ValueWindow, df: DataFrame) -> DataFrame:
        return shapes.windows_shape(node, df)

    def visit_b_sort(self, node: nodes.BSort, df: DataFrame) -> DataFrame:
        return shapes.sort_shape(node, df)

    def visit_match(self, node: nodes.Match, df: DataFrame) -> DataFrame:
        return shapes.match_shape(node, df)

    def visit_join_latest(
        self, node: nodes.JoinLatest, left: DataFrame, right: DataFrame
    ) -> DataFrame:
        return shapes.join_shape(node, left, right)

    def visit_join_last(self, node: nodes.JoinLast, left: DataFrame, right: DataFrame) -> DataFrame:
        return shapes.join_shape(node, left, right)

    def visit_join_value(
        self, node: nodes.JoinValue, left: DataFrame, right: DataFrame
    ) -> DataFrame:
        return shapes.join_shape(node, left, right)

    def visit_sink(self, node: nodes.Sink, df: DataFrame) -> DataFrame:
        return df


def read(spark: SparkSession, node: nodes.Source) -> DataFrame:
    """A source's records, before any watermark."""
    if node.df is not None:
        return node.df
    if kafka.in_topics(node):
        topics = Topics.of(node)
        return kafka.decoded(kafka.stream(spark, topics), topics).drop(*kafka.PLACE)
    reader = spark.readStream if node.streaming else spark.read
    assert node.format is not None
    opened = reader.format(node.format).schema(node.schema).options(**dict(node.options))
    try:
        return opened.load(node.path)
    except (PySparkException, Py4JJavaError) as error:
        why = one_line(error)
        if "DATA_SOURCE_NOT_FOUND" in str(error):
            meant = guess(node.format, FILE_FORMATS, before="; ")
            why = f"Spark has no format {node.format!r}{meant}"
        raise FlowError(f"source {node.name!r} at {node.site}: {why}") from error


def read_again(
    spark: SparkSession, node: nodes.Source, paths: Sequence[str] | None = None
) -> DataFrame:
    """The records of a source of files, not as a stream; of some of its files if they are named."""
    assert node.format is not None
    assert node.path is not None
    reader = spark.read.format(node.format).schema(node.schema).options(**dict(node.options))
    if paths is not None:
        # These are names of files, whatever characters they have.
        reader = reader.option("__globPaths__", "false")
    if os.path.isdir(node.path):
        # So that columns which Spark takes from folder names are there as they were.
        reader = reader.option("basePath", node.path)
    return reader.load([node.path] if paths is None else list(paths))


def counted(df: DataFrame, name: str) -> DataFrame:
    """The same rows, whose number a streaming query tells with each batch, under a name."""
    return df.observe(name, F.count(F.lit(1)).alias("rows"))


def watermarked(df: DataFrame, node: nodes.Source) -> DataFrame:
    """The source's records with the watermark that the source declares."""
    if node.event_time is None or node.watermark is None:
        return df
    return df.withWatermark(node.event_time, node.watermark)


def joined(node: nodes.Join, left: DataFrame, right: DataFrame) -> DataFrame:
    """The join of two frames as the node says."""
    left = left.alias(node.left_alias) if node.left_alias else left
    right = right.alias(node.right_alias) if node.right_alias else right
    on = node.on.column if isinstance(node.on, Expr) else list(node.on)
    return left.join(right, on, node.how)


def deduplicated(node: nodes.Deduplicate, df: DataFrame, columns: list[str] | None) -> DataFrame:
    """The first row of each value of the columns."""
    if node.within_watermark:
        return df.dropDuplicatesWithinWatermark(columns)
    return df.dropDuplicates(columns)
