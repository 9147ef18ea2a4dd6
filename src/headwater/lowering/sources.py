"""A source's records as every lowering starts from them: read once, with one watermark node.

All branches of a query must share a source's watermark node, or the slowest branch would hold the
watermark of the others back; so the frames are made here, once, with what any mode may need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from headwater.columns import quoted
from headwater.flow.kafka import Topics
from headwater.lowering import kafka
from headwater.lowering.identity import arrival_column, id_column, position_column
from headwater.lowering.plain import read, watermarked
from headwater.names import ORDER, POSITION, RECORD, TIME

if TYPE_CHECKING:
    from collections.abc import Container

    from headwater.flow import nodes


class Sources:
    """The frames of a flow's sources, each made once.

    Beside the record's own columns a frame has its id and its event time; for the sources in
    `positions` the place that intervals are over, for those in `ordered` what its rows are sorted
    by to stand in the order of their arrival.
    """

    def __init__(
        self,
        spark: SparkSession,
        positions: Container[str] = (),
        ordered: Container[str] = (),
    ) -> None:
        self.spark = spark
        self.ordered = ordered
        self._positions = positions
        self._frames: dict[str, DataFrame] = {}
        self._unwatched: dict[str, DataFrame] = {}
        self._messages: dict[str, DataFrame] = {}

    def frame(self, node: nodes.Source) -> DataFrame:
        """A source's records with their annotations, below the watermark that it declares."""
        if node.name not in self._frames:
            self._frames[node.name] = watermarked(self.unwatched(node), node)
        return self._frames[node.name]

    def unwatched(self, node: nodes.Source) -> DataFrame:
        """The same above the watermark: what reads these rows has no part in setting it."""
        if node.name not in self._unwatched:
            records = self._read(node)
            added = {RECORD: id_column(node, records), TIME: event_time(node)}
            if node.name in self._positions:
                added[POSITION] = position_column(node)
            if node.name in self.ordered:
                added[f"{ORDER}0"] = arrival_column(node)
            self._unwatched[node.name] = records.withColumns(added).drop(*kafka.PLACE)
        return self._unwatched[node.name]

    def poisoned(self, node: nodes.Source) -> DataFrame | None:
        """The messages of a source that can't be decoded; None where it has none."""
        if not kafka.in_topics(node):
            return None
        return kafka.poisoned(self._raw(node), Topics.of(node))

    def _read(self, node: nodes.Source) -> DataFrame:
        if not kafka.in_topics(node):
            return read(self.spark, node)
        return kafka.decoded(self._raw(node), Topics.of(node))

    def _raw(self, node: nodes.Source) -> DataFrame:
        """A source's messages: one stream in all branches, so that each batch has the same."""
        if node.name not in self._messages:
            self._messages[node.name] = kafka.stream(self.spark, Topics.of(node))
        return self._messages[node.name]


def event_time(node: nodes.Source) -> Column:
    """A copy of a record's event time.

    It is made before the watermark is set, and without Spark's mark: two columns marked as event
    time in one frame are an error in Spark.
    """
    time = quoted(node.event_time) if node.event_time else F.lit(None).cast(TimestampType())
    return unmarked(time)


def unmarked(time: Column) -> Column:
    """The time without Spark's mark of an event-time column."""
    return time.alias(TIME, metadata={})
