"""What every capture mode shares: rows that carry a key, an event time and some annotations.

A mode is a rule for annotations: what a record starts with, what an aggregate makes of those of its
rows, a join of those of its pair, a union of both branches'. All else is the same for all of them,
the key from which result ids are made above all, so that a result has one id in every mode.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, TimestampType

from headwater.columns import identity_hash, is_window, quoted
from headwater.flow.expressions import generator_argument
from headwater.flow.windows import Session, Window
from headwater.lowering import groups, ordered
from headwater.lowering.base import Lowering
from headwater.lowering.functions import mapped, serviced
from headwater.lowering.plain import counted, deduplicated, joined
from headwater.lowering.rows import ORDINAL, flat_mapped
from headwater.lowering.sources import Sources, unmarked
from headwater.lowering.traced import LEFT, RIGHT, Origins, Traced, appended, marked
from headwater.names import KEY, ORDER, POSITION, RECORD, TIME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.flow import nodes


class Tracing(Lowering[Traced]):
    """Nodes to DataFrames with annotations beside the user's columns; a mode fills in its rule."""

    forgiving: ClassVar[bool] = False
    """Whether a group that a user's function can't take is passed over."""

    def __init__(self, sources: Sources) -> None:
        super().__init__()
        self.sources = sources

    def counted(self, made: Traced, name: str) -> Traced:
        return made.with_df(counted(made.df, name))

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
        self, node: nodes.Node, left: Traced, right: Traced, origins: Origins
    ) -> dict[str, Column]:
        """The annotations of a pair, from the two sides' under their prefixes."""
        raise NotImplementedError

    # --- one row to one -----------------------------------------------------------------------

    def visit_source(self, node: nodes.Source) -> Traced:
        frame = self.sources.frame(node)
        made = frame.withColumns({**self.record(node), KEY: F.col(RECORD)})
        unique = node.identity.how in ("position", "offset")
        orders = (f"{ORDER}0",) if node.name in self.sources.ordered else ()
        return Traced(made.drop(RECORD, POSITION), {node.name: False}, unique, orders)

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

    def visit_map(self, node: nodes.Map, rows: Traced) -> Traced:
        return rows.with_df(mapped(rows.df, node, rows.columns, rows.annotations))

    def visit_service(self, node: nodes.Service, rows: Traced) -> Traced:
        return rows.with_df(serviced(rows.df, node, F.col(KEY)))

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
        return appended(rows.with_df(df), ordinal).without(ORDINAL)

    def visit_flat_map(self, node: nodes.FlatMap, rows: Traced) -> Traced:
        annotations = rows.annotations
        df = flat_mapped(rows.df, node, rows.columns, carry=annotations)
        keyed = df.withColumn(KEY, F.xxhash64(KEY, ORDINAL))
        columns = (*node.keep, *node.schema.fieldNames())
        made = rows.with_df(keyed.select(*map(quoted, (*columns, *annotations, ORDINAL))))
        return appended(made, F.col(ORDINAL)).without(ORDINAL)

    # --- several rows to one ------------------------------------------------------------------

    def visit_union(self, node: nodes.Union, *branches: Traced) -> Traced:
        aligned, rows = self.branches(branches)
        if not node.by_name:
            return rows.with_df(reduce(DataFrame.union, aligned))
        by_name = partial(DataFrame.unionByName, allowMissingColumns=node.allow_missing)
        return rows.with_df(reduce(by_name, aligned))

    def visit_merge(self, node: nodes.Merge, *branches: Traced) -> Traced:
        aligned, rows = self.branches(branches)
        return rows.with_df(reduce(DataFrame.unionByName, aligned))

    def branches(self, branches: Sequence[Traced]) -> tuple[list[DataFrame], Traced]:
        """The frames of a union's branches in one shape, and what their rows are together."""
        origins = {
            source: any(rows.origins.get(source, False) for rows in branches)
            for source in dict.fromkeys(s for rows in branches for s in rows.origins)
        }
        depth = max(len(rows.orders) for rows in branches)
        in_order = all(rows.orders for rows in branches)
        orders = tuple(f"{ORDER}{i}" for i in range(depth + 1)) if in_order else ()

        def aligned(branch: int, rows: Traced) -> DataFrame:
            key = F.xxhash64(F.lit(branch), KEY).alias(KEY)
            added = self.aligned(rows, origins)
            missing = F.lit(None).cast("bigint")
            places = [quoted(o) if o in rows.orders else missing.alias(o) for o in orders[:-1]]
            places += [F.lit(branch).cast("bigint").alias(o) for o in orders[-1:]]
            return rows.df.select(*map(quoted, rows.columns), *added, key, TIME, *places)

        frames = [aligned(branch, rows) for branch, rows in enumerate(branches)]
        unique = all(rows.unique for rows in branches)
        return frames, Traced(frames[0], origins, unique, orders)

    def visit_aggregate(self, node: nodes.Aggregate, rows: Traced) -> Traced:
        return self.grouped(node, rows, [e.column for e in node.keys])

    def grouped(self, node: nodes.Aggregate, rows: Traced, keys: list[Column]) -> Traced:
        """The groups of an aggregate, by keys that may have been computed before."""
        found = groups.contents(self, node, rows)
        # A window gives its results their time; without one the latest row does.
        latest = [] if node.window is not None else [F.max(TIME).alias(TIME)]
        df = rows.df.groupBy(*keys).agg(*found.aggregates, *latest)
        fields = df.schema.fields[: len(keys)]
        key = identity_hash(fields) if fields else F.lit(0).cast("bigint")
        time = _time_of_group(node, StructType(fields))
        df = df.withColumns(found.lists) if found.lists else df
        df = df.withColumns({**found.made, KEY: key, TIME: F.col(TIME) if time is None else time})
        return Traced(df.drop(*found.spent), dict.fromkeys(rows.origins, True), unique=True)

    def visit_group_function(self, node: nodes.GroupFunction, rows: Traced) -> Traced:
        return groups.applied(self, node, rows, self.visit_aggregate(node, rows))

    def visit_join(self, node: nodes.Join, left: Traced, right: Traced) -> Traced:
        df = joined(
            node,
            left.df.withColumnsRenamed({c: LEFT + c for c in left.annotations}),
            right.df.withColumnsRenamed({c: RIGHT + c for c in right.annotations}),
        )
        return self.pairs(node, df, left, right)

    def pairs(self, node: nodes.Node, df: DataFrame, left: Traced, right: Traced) -> Traced:
        """Pairs of rows, whose annotations stand under their sides' prefixes."""
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

    # --- in order of arrival ------------------------------------------------------------------

    def carried(self, rows: Traced) -> tuple[str, ...]:
        """The annotations of which an ordered window collects lists, to be made sets of."""
        return ()

    def visit_count_window(self, node: nodes.CountWindow, rows: Traced) -> Traced:
        return ordered.windows(self, node, rows)

    def visit_value_window(self, node: nodes.ValueWindow, rows: Traced) -> Traced:
        return ordered.windows(self, node, rows)

    def visit_b_sort(self, node: nodes.BSort, rows: Traced) -> Traced:
        return ordered.b_sort(node, rows)

    def visit_match(self, node: nodes.Match, rows: Traced) -> Traced:
        return ordered.match(self, node, rows)

    def visit_join_latest(self, node: nodes.JoinLatest, left: Traced, right: Traced) -> Traced:
        return ordered.join(self, node, left, right)

    def visit_join_last(self, node: nodes.JoinLast, left: Traced, right: Traced) -> Traced:
        return ordered.join(self, node, left, right)

    def visit_join_value(self, node: nodes.JoinValue, left: Traced, right: Traced) -> Traced:
        return ordered.join(self, node, left, right)

    def visit_sink(self, node: nodes.Sink, rows: Traced) -> Traced:
        return rows


def _time_of_group(node: nodes.Aggregate, keys: StructType) -> Column | None:
    """An aggregate's event time: its window's last moment, or its event-time key."""
    if isinstance(node.window, Window | Session):
        return last_moment(quoted(node.window.column))
    for field in keys.fields:
        if is_window(field.dataType):
            return last_moment(quoted(field.name))
    for name in marked(keys):
        return unmarked(quoted(name))
    return None


def last_moment(window: Column) -> Column:
    """The event time of what a window gives out."""
    return window["end"] - F.expr("INTERVAL 1 MICROSECOND")
