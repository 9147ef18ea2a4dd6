"""What every capture mode shares: rows that carry a key, an event time and some annotations.

A mode is a rule for annotations: what a record starts with, what an aggregate makes of those of its
rows, a join of those of its pair, a union of both branches'. All else is the same for all of them,
the key from which result ids are made above all, so that a result has one id in every mode.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, TimestampType

from headwater.columns import identity_hash, is_window, quoted
from headwater.flow.expressions import generator_argument
from headwater.flow.windows import Session, Window
from headwater.lowering.base import Lowering
from headwater.lowering.plain import deduplicated, joined
from headwater.lowering.rows import ORDINAL, flat_mapped
from headwater.lowering.sources import POSITION, RECORD, TIME, Sources, unmarked

if TYPE_CHECKING:
    from headwater.flow import nodes

PREFIX = "__hw_"
KEY = "__hw_key"
LEFT, RIGHT = "__hw_left_", "__hw_right_"
MARK = "spark.watermarkDelayMs"

Origins = dict[str, bool]


@dataclass(frozen=True, slots=True)
class Traced:
    """A frame whose rows know where they come from.

    `origins` has, for each source upstream, whether a row may come from several of its records.
    `unique` says that no two rows have the same key.
    """

    df: DataFrame
    origins: Origins
    unique: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the user's columns."""
        return tuple(c for c in self.df.columns if not c.startswith(PREFIX))

    @property
    def annotations(self) -> tuple[str, ...]:
        """The names of the columns that Headwater added."""
        return tuple(c for c in self.df.columns if c.startswith(PREFIX))

    def with_df(self, df: DataFrame) -> Traced:
        """The same origins over another frame."""
        return replace(self, df=df)


class Tracing(Lowering[Traced]):
    """Nodes to DataFrames with annotations beside the user's columns; a mode fills in its rule."""

    def __init__(self, sources: Sources) -> None:
        super().__init__()
        self.sources = sources

    # --- the rule -----------------------------------------------------------------------------

    def record(self, node: nodes.Source) -> dict[str, Column]:
        """The annotations of a record, made from its id and position."""
        raise NotImplementedError

    def aligned(self, rows: Traced, origins: Origins) -> list[Column]:
        """The annotations of one branch of a union in the form that both branches share."""
        raise NotImplementedError

    def collected(self, rows: Traced) -> tuple[list[Column], dict[str, Column]]:
        """The aggregates that collect a group's annotations, and what is then made of them."""
        raise NotImplementedError

    def paired(
        self, node: nodes.Join, left: Traced, right: Traced, origins: Origins
    ) -> dict[str, Column]:
        """The annotations of a pair, from the two sides' under their prefixes."""
        raise NotImplementedError

    # --- one row to one -----------------------------------------------------------------------

    def visit_source(self, node: nodes.Source) -> Traced:
        frame = self.sources.frame(node)
        made = frame.withColumns({**self.record(node), KEY: F.col(RECORD)})
        unique = node.identity.how == "position"
        return Traced(made.drop(RECORD, POSITION), {node.name: False}, unique)

    def visit_static(self, node: nodes.Static) -> Traced:
        no_time = F.lit(None).cast(TimestampType())
        keyed = node.df.withColumns({KEY: identity_hash(node.df.schema.fields), TIME: no_time})
        return Traced(keyed, {}, unique=False)

    def visit_filter(self, node: nodes.Filter, rows: Traced) -> Traced:
        return rows.with_df(rows.df.filter(node.condition.column))

    def visit_project(self, node: nodes.Project, rows: Traced) -> Traced:
        columns = (c.column for c in node.columns)
        return rows.with_df(rows.df.select(*columns, *map(quoted, rows.annotations)))

    def visit_with_columns(self, node: nodes.WithColumns, rows: Traced) -> Traced:
        return rows.with_df(rows.df.withColumns({name: e.column for name, e in node.columns}))

    def visit_rename(self, node: nodes.Rename, rows: Traced) -> Traced:
        return rows.with_df(rows.df.withColumnsRenamed(dict(node.names)))

    def visit_drop(self, node: nodes.Drop, rows: Traced) -> Traced:
        return rows.with_df(rows.df.drop(*(c.column for c in node.columns)))

    def visit_alias(self, node: nodes.Alias, rows: Traced) -> Traced:
        return rows.with_df(rows.df.alias(node.name))

    def visit_watermark(self, node: nodes.Watermark, rows: Traced) -> Traced:
        timed = rows.df.withColumn(TIME, unmarked(F.col(node.column)))
        return rows.with_df(timed.withWatermark(node.column, node.delay))

    # --- one row to many ----------------------------------------------------------------------

    def visit_explode(self, node: nodes.Explode, rows: Traced) -> Traced:
        outer = node.function.endswith("_outer")
        generator = F.posexplode_outer if outer else F.posexplode
        names = node.names if node.function.startswith("pos") else (ORDINAL, *node.names)
        made = generator(generator_argument(node.columns[node.at])).alias(*names)
        columns = [made if i == node.at else c.column for i, c in enumerate(node.columns)]
        df = rows.df.select(*columns, *map(quoted, rows.annotations))
        # An empty array's row, which the outer forms keep, has no position of its own.
        ordinal = F.coalesce(quoted(names[0]), F.lit(-1))
        df = df.withColumn(KEY, F.xxhash64(KEY, ordinal))
        return rows.with_df(df.drop(ORDINAL))

    def visit_flat_map(self, node: nodes.FlatMap, rows: Traced) -> Traced:
        annotations = rows.annotations
        df = flat_mapped(rows.df, node, rows.columns, carry=annotations)
        keyed = df.withColumn(KEY, F.xxhash64(KEY, ORDINAL))
        columns = (*node.keep, *node.schema.fieldNames())
        return rows.with_df(keyed.select(*map(quoted, (*columns, *annotations))))

    # --- several rows to one ------------------------------------------------------------------

    def visit_union(self, node: nodes.Union, left: Traced, right: Traced) -> Traced:
        origins = {
            source: left.origins.get(source, False) or right.origins.get(source, False)
            for source in (*left.origins, *right.origins)
        }

        def aligned(branch: int, rows: Traced) -> DataFrame:
            key = F.xxhash64(F.lit(branch), KEY).alias(KEY)
            added = self.aligned(rows, origins)
            return rows.df.select(*map(quoted, rows.columns), *added, key, TIME)

        both = (aligned(0, left), aligned(1, right))
        if node.by_name:
            df = both[0].unionByName(both[1], allowMissingColumns=node.allow_missing)
        else:
            df = both[0].union(both[1])
        return Traced(df, origins, left.unique and right.unique)

    def visit_aggregate(self, node: nodes.Aggregate, rows: Traced) -> Traced:
        return self.grouped(node, rows, [e.column for e in node.keys])

    def grouped(self, node: nodes.Aggregate, rows: Traced, keys: list[Column]) -> Traced:
        """The groups of an aggregate, by keys that may have been computed before."""
        collected, made = self.collected(rows)
        # A window gives its results their time; without one the latest row does.
        latest = [] if node.window is not None else [F.max(TIME).alias(TIME)]
        df = rows.df.groupBy(*keys).agg(*(e.column for e in node.columns), *collected, *latest)
        fields = df.schema.fields[: len(keys)]
        key = identity_hash(fields) if fields else F.lit(0).cast("bigint")
        time = _time_of_group(node, StructType(fields))
        df = df.withColumns({**made, KEY: key, TIME: F.col(TIME) if time is None else time})
        return Traced(df, dict.fromkeys(rows.origins, True), unique=True)

    def visit_join(self, node: nodes.Join, left: Traced, right: Traced) -> Traced:
        df = joined(
            node,
            left.df.withColumnsRenamed({c: LEFT + c for c in left.annotations}),
            right.df.withColumnsRenamed({c: RIGHT + c for c in right.annotations}),
        )
        origins = {
            source: (source in left.origins and source in right.origins)
            or left.origins.get(source, False)
            or right.origins.get(source, False)
            for source in (*left.origins, *right.origins)
        }
        df = df.withColumns(
            {
                **self.paired(node, left, right, origins),
                # An unmatched row has no right key, which xxhash64 passes over: nothing else does.
                KEY: F.xxhash64(LEFT + KEY, RIGHT + KEY),
                TIME: F.greatest(LEFT + TIME, RIGHT + TIME),
            }
        )
        df = df.drop(*(LEFT + c for c in left.annotations), *(RIGHT + c for c in right.annotations))
        return Traced(df, origins, left.unique and right.unique)

    def visit_deduplicate(self, node: nodes.Deduplicate, rows: Traced) -> Traced:
        columns = node.columns if node.columns else rows.columns
        return rows.with_df(deduplicated(node, rows.df, list(columns)))

    def visit_sink(self, node: nodes.Sink, rows: Traced) -> Traced:
        return rows


def marked(schema: StructType) -> list[str]:
    """The columns that Spark takes for the event time."""
    return [f.name for f in schema.fields if MARK in (f.metadata or {})]


def _time_of_group(node: nodes.Aggregate, keys: StructType) -> Column | None:
    """An aggregate's event time: its window's last moment, or its event-time key."""
    if isinstance(node.window, Window | Session):
        return _last_moment(quoted(node.window.column))
    for field in keys.fields:
        if is_window(field.dataType):
            return _last_moment(quoted(field.name))
    for name in marked(keys):
        return unmarked(quoted(name))
    return None


def _last_moment(window: Column) -> Column:
    return window["end"] - F.expr("INTERVAL 1 MICROSECOND")
