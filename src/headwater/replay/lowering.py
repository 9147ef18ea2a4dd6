"""The `eager` lowering run again in batch: rows know the micro-batch in which they came.

A streaming run drops what comes late, and a batch run would not. So each row carries the number of
the batch in which it arrived at the next step; every step with state drops the rows that Spark's
watermark made late in that batch, and gives its own rows the batch in which Spark gave them out.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as with_default
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from headwater.columns import is_window, quoted
from headwater.errors import UnsupportedError
from headwater.flow import nodes
from headwater.flow.watermarks import MARK, joins_streams
from headwater.flow.windows import Session, microseconds
from headwater.lowering.eager import Eager
from headwater.lowering.sources import Sources, unmarked
from headwater.lowering.traced import LEFT, RIGHT, Origins, Traced, marked
from headwater.names import KEY, TIME
from headwater.replay.sessions import assign_sessions, is_session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.replay.schedule import Schedule, Times


BATCH = "__hw_batch"
SPAN = "__hw_span"
PAST = "__hw_past"


@dataclass(frozen=True, slots=True)
class Lateness:
    """A run's watermarks from the first batch on that a slice has rows of."""

    schedule: Schedule
    first: int = 0

    def in_time(self, step: nodes.Node, past: Column) -> Column:
        """Whether a row was not late for a step; `past` is the time by which it counts as past."""
        limits = self.schedule.let_in(step)[self.first :]
        if not limits.any():
            return F.lit(True)
        place = (F.col(BATCH) - F.lit(self.first - 1)).cast("int")
        return past.isNull() | (F.unix_micros(past) > F.element_at(F.lit(limits), place) * 1000)

    def given_out(self, limits: Times, past: Column) -> Column:
        """The first batch whose limit a time does not pass; the number of all batches if none."""
        earlier = F.filter(F.lit(limits[self.first :]), lambda w: w * 1000 < F.unix_micros(past))
        batch = F.size(earlier).cast("bigint") + F.lit(self.first)
        return F.when(past.isNull(), F.lit(len(limits))).otherwise(batch)


@dataclass(frozen=True, slots=True)
class Question:
    """What a replay has to find out, beyond the sets of source ids."""

    to: str | None = None
    """The step in terms of whose rows provenance is asked for, instead of the sources'."""
    survivors: frozenset[str] = frozenset()
    """Deduplications whose survivor must be known; of the others all candidates go on."""
    only: Mapping[str, Column] = with_default(default_factory=dict)
    """Conditions on the rows that enter some steps: others can't become what was asked for."""


class Replayed(Eager):
    """Sets of source ids, as `eager` has them, over slices of the sources.

    `sources` has the slice of each source, with the ids, times and batches of its records.
    """

    name: ClassVar[str] = "replay"
    forgiving: ClassVar[bool] = True

    def __init__(
        self, sources: Sources, lateness: Lateness | None, question: Question | None = None
    ) -> None:
        self.question = question or Question()
        steps = frozenset[str]() if self.question.to is None else frozenset({self.question.to})
        super().__init__(sources, steps)
        self.lateness = lateness

    # --- the rule: eager's, and the batch -----------------------------------------------------

    def visit_static(self, node: nodes.Static) -> Traced:
        rows = super().visit_static(node)
        return rows.with_df(rows.df.withColumn(BATCH, F.lit(0).cast("bigint")))

    def visit_watermark(self, node: nodes.Watermark, rows: Traced) -> Traced:
        timed = rows.df.withColumn(TIME, unmarked(F.col(node.column)))
        others = {name: unmarked(quoted(name)) for name in marked(timed.schema)}
        marks = {**others, node.column: as_event_time(node.column, node.delay)}
        return rows.with_df(timed.withColumns(marks))

    def aligned(self, rows: Traced, origins: Origins) -> list[Column]:
        return [*super().aligned(rows, origins), F.col(BATCH)]

    def collected(self, rows: Traced) -> tuple[list[Column], dict[str, Column]]:
        collected, made = super().collected(rows)
        return [*collected, F.max(BATCH).alias(BATCH)], made

    def paired(
        self, node: nodes.Node, left: Traced, right: Traced, origins: Origins
    ) -> dict[str, Column]:
        batch = F.greatest(LEFT + BATCH, RIGHT + BATCH)
        assert isinstance(node, nodes.Join)
        if node.how == "left_outer" and self._loses_rows(node):
            assert self.lateness is not None
            # A row without a partner comes out when none can come any more.
            limits = self.lateness.schedule.given_out(node) - node.waits[0]
            alone = self.lateness.given_out(limits, F.col(LEFT + PAST))
            batch = F.when(F.col(RIGHT + KEY).isNull(), F.greatest(batch, alone)).otherwise(batch)
        return {**super().paired(node, left, right, origins), BATCH: batch}

    # --- steps that keep state ----------------------------------------------------------------

    def visit_aggregate(self, node: nodes.Aggregate, rows: Traced) -> Traced:
        keys = [e.column for e in node.keys]
        if node.step in self.question.only:
            rows = rows.with_df(rows.df.filter(self.question.only[node.step]))
        if self.lateness is None:
            return self.grouped(node, rows, keys)
        heading = rows.df.select(*keys)
        times = marked(heading.schema)
        if len(times) != 1:
            raise UnsupportedError(f"step {node.step!r}: no key is the event time")
        at = heading.columns.index(times[0])
        df = rows.df.withColumn(SPAN, keys[at])
        df = self.let_in(node, rows.with_df(df), past_of(df, SPAN)).df
        field = heading.schema[at]
        # A window made of sessions' times has their mark as well, without being one.
        if isinstance(node.window, Session) or (node.window is None and is_session(field)):
            others = keys[:at] + keys[at + 1 :]
            limits = self.lateness.schedule.let_in(node)
            df = assign_sessions(df, SPAN, BATCH, others, limits)
        keys[at] = quoted(SPAN).alias(times[0])
        groups = self.grouped(node, rows.with_df(df), keys)
        limits = self.lateness.schedule.given_out(node)
        past = past_of(groups.df, times[0])
        batch = self.lateness.given_out(limits, past)
        return self.given_out(node, groups.with_df(groups.df.withColumn(BATCH, batch)), past)

    def visit_join(self, node: nodes.Join, left: Traced, right: Traced) -> Traced:
        if not self._loses_rows(node):
            return super().visit_join(node, left, right)
        pairs = super().visit_join(node, self._in_time(node, left), self._in_time(node, right))
        return self.given_out(node, pairs, None)

    def visit_deduplicate(self, node: nodes.Deduplicate, rows: Traced) -> Traced:
        if node.step not in self.question.survivors:
            return rows
        if self.lateness is not None:
            rows = self._in_time(node, rows)
        # The columns hold the record's id: rows that share them are deliveries of one record, of
        # which the first counts.
        columns = node.columns if node.columns else rows.columns
        order = Window.partitionBy(*map(quoted, columns)).orderBy(BATCH)
        numbered = rows.df.withColumn(SPAN, F.row_number().over(order))
        return rows.with_df(numbered.filter(F.col(SPAN) == 1).drop(SPAN, PAST))

    def _loses_rows(self, node: nodes.Join) -> bool:
        return self.lateness is not None and joins_streams(node)

    def _in_time(self, node: nodes.Join | nodes.Deduplicate, rows: Traced) -> Traced:
        assert self.lateness is not None
        times = marked(rows.df.schema)
        past = past_of(rows.df, times[0]) if times else F.lit(None).cast("timestamp")
        timed = rows.df.withColumn(PAST, past.alias(PAST, metadata={}))
        return self.let_in(node, rows.with_df(timed), F.col(PAST))

    def let_in(self, node: nodes.Node, rows: Traced, past: Column) -> Traced:
        """The rows that were not late for a step; `past` is when each counts as past."""
        assert self.lateness is not None
        return rows.with_df(rows.df.filter(self.lateness.in_time(node, past)))

    def given_out(self, node: nodes.Node, rows: Traced, past: Column | None) -> Traced:
        """The rows that the run gave out before it ended, in the batch that they carry.

        `past` is the time by which a group counts as past; a join has none.
        """
        assert self.lateness is not None
        batches = len(self.lateness.schedule.watermarks)
        return rows.with_df(rows.df.filter(F.col(BATCH) < batches))


def as_event_time(column: str, delay: str) -> Column:
    """A column with Spark's mark of the event time, which a batch frame gets in no other way."""
    return quoted(column).alias(column, metadata={MARK: microseconds(delay) // 1000})


def past_of(df: DataFrame, name: str) -> Column:
    """The time by which a row counts as past: a window's end, or the moment itself."""
    column = quoted(name)
    return column["end"] if is_window(df.schema[name].dataType) else column
