"""One record followed through a replay: at every step, what became of the rows that hold it.

The replay itself is that of `headwater.replay.lowering`. Each step that can lose rows tells which
of those with the record it lost, and why; the sink tells which came out.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headwater.columns import identity_hash
from headwater.flow import nodes
from headwater.flow.watermarks import MARK
from headwater.lowering import groups
from headwater.lowering.eager import as_array, origin
from headwater.lowering.outputs import result_id
from headwater.lowering.traced import LEFT, RIGHT, Origins, Traced, marked
from headwater.names import KEY
from headwater.replay import fates, shape
from headwater.replay.ancestors import Range, ranges
from headwater.replay.columns import source_column
from headwater.replay.engine import explained
from headwater.replay.fates import Fate, Telling
from headwater.replay.lowering import BATCH, PAST, Lateness, Replayed, past_of
from headwater.replay.pruning import is_used
from headwater.replay.reading import Slices
from headwater.replay.slicing import Slice
from headwater.replay.survivors import (
    ADDED,
    CLAIM,
    EXPIRY,
    IS_TIED,
    KEPT,
    OTHER,
    SURVIVORS,
    with_survivors,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.lowering.sources import Sources
    from headwater.replay.engine import Engine
    from headwater.store.catalog import Sink

PARENT, MINE = "__hw_parent", "__hw_mine"


def nearby(sink: nodes.Sink, source: str, time: int | None) -> dict[str, Slice]:
    """The slice of each source that has all records which may meet that of a source at a time (µs).

    From the record forwards to the times of all results that it may be part of, and from there
    back to everything that decides about these.
    """
    by_time = ranges(sink)
    own = by_time.get(source)
    bounded = isinstance(own, Range) and time is not None and not _remembers(sink)
    found = {}
    for node in sink.upstream():
        if isinstance(node, nodes.Source):
            range_ = by_time.get(node.name)
            times = None
            if bounded and isinstance(range_, Range):
                assert isinstance(own, Range)
                assert time is not None
                times = ((time - own.after - range_.before, time + own.before + range_.after),)
            found[node.name] = Slice(times=times)
    return found


def _remembers(sink: nodes.Sink) -> bool:
    """Whether a deduplication may drop a row for one of quite another time."""
    for node in sink.upstream():
        if isinstance(node, nodes.Deduplicate):
            columns = node.columns or ()
            found = [f for c in columns if (f := source_column(node.input, c)) is not None]
            if not any(
                column == source.event_time or source.identity.columns == (column,)
                for source, column in found
            ):
                return True
    return False


class Followed(Replayed):
    """A replay in which one record's rows are told apart."""

    name: ClassVar[str] = "why_not"

    def __init__(
        self,
        sources: Sources,
        lateness: Lateness | None,
        sink: nodes.Sink,
        record: tuple[str, int],
    ) -> None:
        super().__init__(sources, lateness)
        self.sink = sink
        self.source, self.id = record
        self._told: list[DataFrame] = []

    def fates(self) -> list[Fate]:
        """What became of the record's rows, and what else was told on the way."""
        rows = self.lower(self.sink)
        self._tell(self.sink, Telling(F.lit(fates.REACHED), result=result_id(self.sink)), rows)
        table = reduce(DataFrame.union, self._told).toArrow()
        return [Fate(**row) for row in table.to_pylist()]

    # --- telling ------------------------------------------------------------------------------

    def holds(self, rows: Traced) -> Column:
        """Whether a row holds the record."""
        if MINE in rows.df.columns:
            return F.col(MINE)
        if self.source not in rows.origins:
            return F.lit(False)
        ids = F.col(f"`{origin(self.source)}`")
        id_ = F.lit(self.id).cast("bigint")
        held = F.array_contains(ids, id_) if rows.origins[self.source] else ids == id_
        return F.coalesce(held, F.lit(False))

    def _tell(
        self,
        node: nodes.Node,
        telling: Telling,
        rows: Traced,
        when: Column | None = None,
        without: DataFrame | None = None,
    ) -> None:
        """Tell of the rows with the record for which `when` holds, whose keys `without` lacks."""
        if self.source not in rows.origins:
            return
        # Conditions first: a name of the user's may need the frame as it is.
        df = rows.df.filter(self.holds(rows))
        df = df if when is None else df.filter(when)
        if without is not None:
            df = df.join(without.select(KEY).distinct(), KEY, "left_anti")
        self._told.append(fates.told(fates.with_values(df), node.step, telling))

    def _parented(self, rows: Traced) -> Traced:
        return rows.with_df(rows.df.withColumn(PARENT, F.col(KEY)))

    # --- one row at a time --------------------------------------------------------------------

    def visit_source(self, node: nodes.Source) -> Traced:
        rows = super().visit_source(node)
        self._tell(node, Telling(F.lit(fates.ARRIVED)), rows)
        return rows

    def visit_filter(self, node: nodes.Filter, rows: Traced) -> Traced:
        fails = ~F.coalesce(node.condition.column, F.lit(False))
        self._tell(node, Telling(F.lit(fates.FILTERED)), rows, fails)
        return super().visit_filter(node, rows)

    def visit_explode(self, node: nodes.Explode, rows: Traced) -> Traced:
        return self._one_to_many(node, rows, super().visit_explode)

    def visit_flat_map(self, node: nodes.FlatMap, rows: Traced) -> Traced:
        return self._one_to_many(node, rows, super().visit_flat_map)

    def _one_to_many(
        self, node: nodes.Node, rows: Traced, visit: Callable[[Any, Traced], Traced]
    ) -> Traced:
        made = visit(node, self._parented(rows))
        parents = made.df.select(F.col(PARENT).alias(KEY))
        self._tell(node, Telling(F.lit(fates.NOTHING)), rows, without=parents)
        return made.without(PARENT)

    # --- steps that keep state ----------------------------------------------------------------

    def let_in(self, node: nodes.Node, rows: Traced, past: Column) -> Traced:
        assert self.lateness is not None
        first = self.lateness.first
        limits = self.lateness.schedule.let_in(node)[first:]
        if limits.any():
            at = F.element_at(F.lit(limits), (F.col(BATCH) - F.lit(first - 1)).cast("int"))
            late = Telling(F.lit(fates.LATE), watermark=F.timestamp_millis(at), closes_at=past)
            self._tell(node, late, rows, ~self.lateness.in_time(node, past))
        return super().let_in(node, rows, past)

    def given_out(self, node: nodes.Node, rows: Traced, past: Column | None) -> Traced:
        assert self.lateness is not None
        side = None
        if isinstance(node, nodes.Join):
            # A left row without a partner, which comes out once none can come.
            side, past = 0, _later(node.waits[0])
        waiting = F.col(BATCH) >= len(self.lateness.schedule.watermarks)
        opened = Telling(F.lit(fates.OPEN), watermark=self._now(node), closes_at=past, side=side)
        self._tell(node, opened, rows, waiting)
        return super().given_out(node, rows, past).without(PAST)

    def _now(self, node: nodes.Node) -> Column:
        """A step's watermark in the last batch."""
        assert self.lateness is not None
        now = int(self.lateness.schedule.given_out(node)[-1])
        return F.timestamp_millis(F.lit(now)) if now else F.lit(None)

    def visit_aggregate(self, node: nodes.Aggregate, rows: Traced) -> Traced:
        keyed = rows.df.select(KEY, *(e.column for e in node.keys)).select(KEY)
        if node.window is not None:
            self._tell(node, Telling(F.lit(fates.NOTHING)), rows, without=keyed)
        some = node.concise or isinstance(node, nodes.GroupFunction)
        if some:
            rows = rows.with_df(rows.df.withColumn(MINE, self.holds(rows)))
        made = super().visit_aggregate(node, rows)
        if isinstance(node, nodes.GroupFunction) or not some:
            return made
        return self._deciding(node, made)

    def collected(self, rows: Traced) -> tuple[list[Column], dict[str, Column]]:
        collected, made = super().collected(rows)
        mine = [F.max(MINE).alias(MINE)] if MINE in rows.df.columns else []
        return [*collected, *mine], made

    def _deciding(self, node: nodes.Node, made: Traced) -> Traced:
        """The results of groups, without telling on those in which only other rows count."""
        counts = self.holds(made.without(MINE))
        self._tell(node, Telling(F.lit(fates.PASSED_OVER)), made, ~counts)
        return made.without(MINE)

    def visit_group_function(self, node: nodes.GroupFunction, rows: Traced) -> Traced:
        grouped = self.visit_aggregate(node, rows)
        made = groups.applied(self, node, rows, self._parented(grouped))
        parents = made.df.select(F.col(PARENT).alias(KEY))
        self._tell(node, Telling(F.lit(fates.NOTHING)), grouped, without=parents)
        return self._deciding(node, made.without(PARENT))

    def paired(
        self, node: nodes.Node, left: Traced, right: Traced, origins: Origins
    ) -> dict[str, Column]:
        pair = super().paired(node, left, right, origins)
        return {**pair, PAST: F.col(LEFT + PAST)} if PAST in left.df.columns else pair

    def pairs(self, node: nodes.Node, df: DataFrame, left: Traced, right: Traced) -> Traced:
        assert isinstance(node, nodes.Join)
        for side, (prefix, rows) in enumerate(((LEFT, left), (RIGHT, right))):
            if side == 0 and node.how == "left_outer":
                continue
            partners = df.select(F.col(prefix + KEY).alias(KEY))
            self._tell(node, self._alone(node, side), rows, without=partners)
        return super().pairs(node, df, left, right)

    def _alone(self, node: nodes.Join, side: int) -> Telling:
        """What is told of a row without a partner: whether one may still come."""
        if self._loses_rows(node):
            assert self.lateness is not None
            now = int(self.lateness.schedule.given_out(node)[-1])
            closes = _later(node.waits[side])
            waits = F.unix_micros(closes) > F.lit(now * 1000)
            # Where times do not bound pairs, a row without a time may still be part of one.
            waits = F.coalesce(waits, F.lit(node.range is None))
            kind = F.when(waits, fates.OPEN).otherwise(fates.UNMATCHED)
            return Telling(kind, watermark=self._now(node), closes_at=closes, side=side)
        # More rows may come for a side that does not stream, as long as the other does.
        more = side == 1 and self.lateness is not None
        return Telling(F.lit(fates.OPEN if more else fates.UNMATCHED), side=side)

    def visit_deduplicate(self, node: nodes.Deduplicate, rows: Traced) -> Traced:
        columns = node.columns or rows.columns
        times = [
            name
            for name in marked(rows.df.schema)
            if node.within_watermark
            or name in columns
            or is_used(self.sink, node.step, name, self.sources)
        ]
        let_in = np.zeros(0, np.int64)
        past = F.lit(None).cast("timestamp")
        if self.lateness is not None:
            let_in = self.lateness.schedule.let_in(node)
            if times:
                past = past_of(rows.df, times[0])
                rows = self.let_in(node, rows, past)
        expiry = F.lit(None).cast("bigint")
        if node.within_watermark and times:
            delay = int((rows.df.schema[times[0]].metadata or {})[MARK])
            expiry = F.unix_micros(past) + F.lit(delay * 1000)
        # Where a result's key shows which row survived, each goes on; else equal ones are one.
        fields = [f for f in rows.df.schema.fields if f.name in rows.columns]
        ids = [F.sort_array(as_array(rows, source)) for source in rows.origins]
        content = F.xxhash64(identity_hash(fields), *ids)
        claim = content if node.step in deciding(self.sink) else F.col(KEY)
        claims = rows.with_df(rows.df.withColumns({EXPIRY: expiry, CLAIM: claim}))
        df = with_survivors(claims, columns, BATCH, let_in, self.source)
        done = rows.with_df(df)
        # Another delivery of the record itself is no loss.
        lost = ~F.col(KEPT) & ~F.array_contains(SURVIVORS, F.lit(self.id).cast("bigint"))
        only = F.when(F.size(SURVIVORS) == 1, F.get(SURVIVORS, F.lit(0)))
        duplicate = Telling(F.lit(fates.DUPLICATE), other=F.col(OTHER), survivor=only)
        self._tell(node, duplicate, done, lost)
        self._tell(node, Telling(F.lit(fates.TIED), other=F.col(OTHER)), done, F.col(IS_TIED))
        ties = fates.with_values(df.filter(IS_TIED).limit(1))
        self._told.append(fates.told(ties, node.step, Telling(F.lit(fates.TIES))))
        return done.with_df(df.filter(KEPT)).without(*ADDED, EXPIRY, CLAIM)


def _later(wait: int) -> Column:
    """So many milliseconds after the time by which a row counts as past."""
    return F.timestamp_micros(F.unix_micros(PAST) + F.lit(wait * 1000))


def follow(
    engine: Engine, sink: Sink, run: tuple[str, int], record: tuple[str, int], time: int | None
) -> list[Fate]:
    """What became of a record on its way to a sink, by the end of a batch of a query.

    `record` is a source and an id, `time` (µs) its event time.
    """
    node = engine.node(sink)
    with explained(sink):
        readings = engine.readings(sink, *run, nearby(node, record[0], time))
        lateness = engine.lateness(node, *run, readings)
        return Followed(Slices(readings), lateness, node, record).fates()


def deciding(sink: nodes.Sink) -> set[str]:
    """The deduplications whose survivors decide about rows that do not show which survived."""
    found = {node.step for node in shape.deciding(sink)}
    for below in sink.upstream():
        if isinstance(below, nodes.Deduplicate):
            above = below.input.upstream()
            found |= {node.step for node in above if isinstance(node, nodes.Deduplicate)}
    return found
