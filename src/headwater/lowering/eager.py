"""`eager`: each row carries the ids of the source records behind it, as native columns.

The rule per operator is Ariadne's: a step with one input row per output row passes the
annotation on, an aggregate collects those of its rows, a join unites those of its pair, a
union aligns, a deduplication keeps the survivor's. Beside the ids a row carries its key, from
which result ids are made, and its event time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, TimestampType

from headwater.columns import identity_hash, is_window, quoted
from headwater.flow.expressions import generator_argument
from headwater.flow.windows import Session, Window
from headwater.lowering.base import Lowering
from headwater.lowering.identity import id_column
from headwater.lowering.plain import deduplicated, joined, read, watermarked
from headwater.lowering.rows import ORDINAL, flat_mapped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.flow import nodes

KEY = "__hw_key"
TIME = "__hw_time"
ORIGIN = "__hw_from_"
LEFT, RIGHT = "__hw_left_", "__hw_right_"


@dataclass(frozen=True, slots=True)
class Traced:
    """A frame whose rows know where they come from.

    `origins` has, for each source upstream, whether a row may come from several of its records
    (an array of ids) or from one at most (a plain id). `unique` says that no two rows have the
    same key.
    """

    df: DataFrame
    columns: tuple[str, ...]
    origins: dict[str, bool]
    unique: bool

    @property
    def annotations(self) -> tuple[str, ...]:
        """The names of the columns that Headwater added."""
        return (*(origin(source) for source in self.origins), KEY, TIME)

    def with_df(self, df: DataFrame) -> Traced:
        """The same annotations over a frame with other user columns."""
        added = set(self.annotations)
        return replace(self, df=df, columns=tuple(c for c in df.columns if c not in added))


def origin(source: str) -> str:
    """The column that holds the ids of a source's records."""
    return ORIGIN + source


class Eager(Lowering[Traced]):
    """Nodes to DataFrames with sets of source ids beside the user's columns."""

    name: ClassVar[str] = "eager"

    def __init__(self, spark: SparkSession) -> None:
        super().__init__()
        self.spark = spark

    def visit_source(self, node: nodes.Source) -> Traced:
        records = read(self.spark, node)
        record_id = id_column(node, records)
        # The event time is copied before the watermark is set, and its metadata cleared: two
        # columns marked as event time in one frame are an error in Spark.
        time = quoted(node.event_time) if node.event_time else F.lit(None).cast(TimestampType())
        annotated = records.withColumns(
            {origin(node.name): record_id, KEY: record_id, TIME: _unmarked(time)}
        )
        columns = tuple(records.columns)
        unique = node.identity.how == "position"
        return Traced(watermarked(annotated, node), columns, {node.name: False}, unique)

    def visit_static(self, node: nodes.Static) -> Traced:
        no_time = F.lit(None).cast(TimestampType())
        keyed = node.df.withColumns({KEY: identity_hash(node.df.schema.fields), TIME: no_time})
        return Traced(keyed, tuple(node.df.columns), {}, unique=False)

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
        timed = rows.df.withColumn(TIME, _unmarked(F.col(node.column)))
        return rows.with_df(timed.withWatermark(node.column, node.delay))

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
        df = flat_mapped(rows.df, node, rows.columns, carry=rows.annotations)
        keyed = df.withColumn(KEY, F.xxhash64(KEY, ORDINAL))
        columns = (*node.keep, *node.schema.fieldNames())
        return rows.with_df(keyed.select(*map(quoted, (*columns, *rows.annotations))))

    def visit_union(self, node: nodes.Union, left: Traced, right: Traced) -> Traced:
        origins = {
            source: left.origins.get(source, False) or right.origins.get(source, False)
            for source in (*left.origins, *right.origins)
        }

        def aligned(branch: int, rows: Traced) -> DataFrame:
            added = [_widened(rows, source, many) for source, many in origins.items()]
            key = F.xxhash64(F.lit(branch), KEY).alias(KEY)
            return rows.df.select(*map(quoted, rows.columns), *added, key, TIME)

        both = (aligned(0, left), aligned(1, right))
        if node.by_name:
            df = both[0].unionByName(both[1], allowMissingColumns=node.allow_missing)
        else:
            df = both[0].union(both[1])
        traced = Traced(df, (), origins, left.unique and right.unique)
        return traced.with_df(df)

    def visit_aggregate(self, node: nodes.Aggregate, rows: Traced) -> Traced:
        collected = [
            F.collect_list(origin(source)).alias(origin(source)) for source in rows.origins
        ]
        # A window gives its results their time; without one the latest row does.
        latest = [] if node.window is not None else [F.max(TIME).alias(TIME)]
        df = rows.df.groupBy(*(e.column for e in node.keys)).agg(
            *(e.column for e in node.columns), *collected, *latest
        )
        keys = df.schema.fields[: len(node.keys)]
        sets = {
            origin(source): F.array_distinct(
                F.flatten(origin(source)) if many else F.col(origin(source))
            )
            for source, many in rows.origins.items()
        }
        key = identity_hash(keys) if keys else F.lit(0).cast("bigint")
        time = _time_of_group(node, StructType(keys))
        df = df.withColumns({**sets, KEY: key, TIME: F.col(TIME) if time is None else time})
        many = dict.fromkeys(rows.origins, True)
        return replace(rows, origins=many, unique=True).with_df(df)

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
        united = {
            origin(source): _united(source, left, right, many) for source, many in origins.items()
        }
        df = df.withColumns(
            {
                **united,
                # An unmatched row has no right key, which xxhash64 passes over: nothing else does.
                KEY: F.xxhash64(LEFT + KEY, RIGHT + KEY),
                TIME: F.greatest(LEFT + TIME, RIGHT + TIME),
            }
        )
        df = df.drop(*_prefixed(LEFT, left.annotations), *_prefixed(RIGHT, right.annotations))
        return Traced(df, (), origins, left.unique and right.unique).with_df(df)

    def visit_deduplicate(self, node: nodes.Deduplicate, rows: Traced) -> Traced:
        columns = node.columns if node.columns else rows.columns
        return rows.with_df(deduplicated(node, rows.df, list(columns)))

    def visit_sink(self, node: nodes.Sink, rows: Traced) -> Traced:
        return rows


def _unmarked(time: Column) -> Column:
    """The time without Spark's mark of an event-time column."""
    return time.alias(TIME, metadata={})


def _prefixed(prefix: str, names: Iterable[str]) -> list[str]:
    return [prefix + name for name in names]


def _as_set(column: Column, many: bool) -> Column:
    """A row's ids of one source as an array, empty where it has none."""
    if many:
        return F.coalesce(column, F.array().cast("array<bigint>"))
    return F.when(column.isNull(), F.array().cast("array<bigint>")).otherwise(F.array(column))


def _widened(rows: Traced, source: str, many: bool) -> Column:
    """The annotation of one branch of a union in the type that both branches share."""
    if source not in rows.origins:
        none: Column = F.lit(None).cast("array<bigint>" if many else "bigint")
        return none.alias(origin(source))
    own = quoted(origin(source))
    wide = _as_set(own, False) if many and not rows.origins[source] else own
    return wide.alias(origin(source))


def _united(source: str, left: Traced, right: Traced, many: bool) -> Column:
    """The annotation of a joined pair."""
    name = origin(source)
    sides = [
        (quoted(prefix + name), rows.origins[source])
        for prefix, rows in ((LEFT, left), (RIGHT, right))
        if source in rows.origins
    ]
    if len(sides) == 1:
        return sides[0][0]
    assert many
    return F.array_distinct(F.concat(*(_as_set(column, each) for column, each in sides)))


def _time_of_group(node: nodes.Aggregate, keys: StructType) -> Column | None:
    """An aggregate's event time: its window's last moment, or its event-time key."""
    if isinstance(node.window, Window | Session):
        return _last_moment(quoted(node.window.column))
    for field in keys.fields:
        if is_window(field.dataType):
            return _last_moment(quoted(field.name))
    for field in keys.fields:
        if "spark.watermarkDelayMs" in (field.metadata or {}):
            return _unmarked(quoted(field.name))
    return None


def _last_moment(window: Column) -> Column:
    return window["end"] - F.expr("INTERVAL 1 MICROSECOND")
