"""Slices of sources as batch frames: read again from their files, or from the store's copies."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater.capture.decode import arrow_schema
from headwater.capture.offsets import Stretch
from headwater.columns import quoted
from headwater.errors import StoreError
from headwater.flow.kafka import Topics
from headwater.lowering import kafka
from headwater.lowering.identity import (
    can_be_read_again,
    file_positions,
    has_files,
    id_column,
    position_column,
)
from headwater.lowering.kafka import in_topics
from headwater.lowering.plain import read_again
from headwater.lowering.sources import Sources, event_time
from headwater.names import POSITION, RECORD, TIME
from headwater.replay.lowering import BATCH, as_event_time
from headwater.replay.slicing import Slice, contains
from headwater.store.batch import ID, SEQ
from headwater.store.batch import TIME as STORED_TIME
from headwater.store.files import local
from headwater.store.reread import gone
from headwater.store.schema import quoted as sql_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.flow import nodes
    from headwater.store.catalog import Source
    from headwater.store.reader import Reader

FILE, FIRST, LAST = "__hw_file", "__hw_first", "__hw_last"
_EPOCH = datetime.fromtimestamp(0, UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Reading:
    """A slice that is ready to be read."""

    df: DataFrame
    first_batch: int | None


class Slices(Sources):
    """Slices in place of the sources themselves."""

    def __init__(self, readings: dict[str, Reading]) -> None:
        self._frames = {name: reading.df for name, reading in readings.items()}
        self.ordered = ()

    def frame(self, node: nodes.Source) -> DataFrame:
        return self._frames[node.name]


@dataclass(frozen=True, slots=True)
class Past:
    """What a run had read by the end of one of its batches."""

    spark: SparkSession
    reader: Reader
    query_id: str
    until: int

    def read(self, node: nodes.Source, source: Source, part: Slice) -> Reading:
        """A slice of a source: the records with id, time and the batch in which they came."""
        if node.keep == "all" or not can_be_read_again(node):
            return self._kept(node, source, part)
        if in_topics(node):
            return self._messages(node, source, part)
        if not node.streaming:
            return Reading(self._static(node, part), None)
        return self._files(node, source, part)

    def _arrived(self, source: Source) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.reader.query(
            "SELECT a.path, a.modified, b.batch FROM arrivals a JOIN batches b USING (seq) "
            "WHERE a.source_no = ? AND b.query_id = ? AND b.batch <= ? ORDER BY b.batch, a.path",
            [source.no, self.query_id, self.until],
        ).to_pylist()
        return found

    def _messages(self, node: nodes.Source, source: Source, part: Slice) -> Reading:
        topics = Topics.of(node)
        stretches = []
        for row in self._arrived(source):
            stretch = Stretch.of(row["path"], row["modified"])
            if (cut := _cut(stretch, topics, part)) is not None:
                stretches.append((*cut, row["batch"]))
        if not stretches:
            return Reading(_timed(node, _empty(self.spark, node)), None)
        raw = kafka.again(self.spark, topics, joined([span[:4] for span in stretches]))
        frame = _identified(node, kafka.decoded(raw, topics))
        if part.positions is not None:
            frame = frame.withColumn(POSITION, position_column(node))
        frame = _narrowed(node, frame, part)
        names = (kafka.TOPIC, kafka.PARTITION, FIRST, LAST, BATCH)
        table = pa.table(dict(zip(names, map(list, zip(*stretches, strict=True)), strict=True)))
        frame = frame.join(
            F.broadcast(self.spark.createDataFrame(table)), [kafka.TOPIC, kafka.PARTITION]
        ).filter((F.col(kafka.OFFSET) >= F.col(FIRST)) & (F.col(kafka.OFFSET) < F.col(LAST)))
        frame = frame.drop(*kafka.PLACE, FIRST, LAST, POSITION)
        return Reading(_timed(node, frame), min(batch for *_, batch in stretches))

    def _files(self, node: nodes.Source, source: Source, part: Slice) -> Reading:
        files = []
        for file in self._arrived(source):
            bounds: tuple[int, int] | None = file_positions(file["modified"])
            if part.positions is not None:
                assert bounds is not None
                bounds = contains(part.positions, *bounds)
            if bounds is not None and not part.is_empty:
                # The column `_metadata.file_path` has one slash where Spark's log has three.
                path = file["path"].replace("file:///", "file:/")
                _require(source, file["path"], file["modified"])
                if part.times is None or may_hold(node, local(path), part.times):
                    files.append((path, file["batch"], *bounds))
        if not files:
            return Reading(_timed(node, _empty(self.spark, node)), None)
        records = read_again(self.spark, node, [local(path) for path, *_ in files])
        frame = _identified(node, records).withColumn(FILE, F.col("_metadata.file_path"))
        if part.positions is not None:
            frame = frame.withColumn(POSITION, position_column(node))
        frame = _narrowed(node, frame, part)
        table = pa.table(
            dict(zip((FILE, BATCH, FIRST, LAST), map(list, zip(*files, strict=True)), strict=True))
        )
        frame = frame.join(F.broadcast(self.spark.createDataFrame(table)), FILE)
        if part.positions is not None:
            frame = frame.filter(F.col(POSITION).between(F.col(FIRST), F.col(LAST)))
        frame = frame.drop(FILE, FIRST, LAST, POSITION)
        return Reading(_timed(node, frame), min(batch for _, batch, *_ in files))

    def _static(self, node: nodes.Source, part: Slice) -> DataFrame:
        frame = _identified(node, read_again(self.spark, node))
        if part.positions is not None:
            frame = frame.withColumn(POSITION, position_column(node))
            frame = _narrowed(node, frame, part).drop(POSITION)
        return frame.withColumn(BATCH, F.lit(0).cast("bigint"))

    def _kept(self, node: nodes.Source, source: Source, part: Slice) -> Reading:
        if has_files(node) or (in_topics(node) and node.identity.how != "offset"):
            # Their positions are not their ids, and the store has no others.
            part = replace(part, positions=None)
        self._require_whole(source, part)
        conditions = ["true"]
        if part.positions is not None:
            conditions.append(_within(f"r.{ID}", part.positions, "{}"))
        if part.times is not None:
            conditions.append(_within(f"r.{STORED_TIME}", part.times, "make_timestamptz({})"))
        where = " AND ".join(conditions)
        own = ", ".join(f"r.{sql_name(name)}" for name in source.schema.names)
        rows = self.reader.query(
            f"SELECT {own}, r.{ID} AS {RECORD}, b.batch AS {BATCH} FROM record_{source.no} r "
            f"JOIN batches b ON r.{SEQ} = b.seq WHERE b.batch <= {self.until} AND {where}"
        )
        schema = arrow_schema(node.schema).append(pa.field(RECORD, pa.int64()))
        schema = schema.append(pa.field(BATCH, pa.int64()))
        table = pa.table([rows[f.name].cast(f.type) for f in schema], schema=schema)
        frame = self.spark.createDataFrame(table).withColumn(TIME, event_time(node))
        if not node.streaming:
            return Reading(frame.withColumn(BATCH, F.lit(0).cast("bigint")), None)
        first = min(rows[BATCH].to_pylist(), default=None)
        return Reading(_timed(node, frame), first)

    def _require_whole(self, source: Source, part: Slice) -> None:
        """The store's copies must all be there: without one, other results may come out."""
        within = "true" if part.positions is None else _within("id", part.positions, "{}")
        rows = self.reader.query(
            f"SELECT count(*) AS n FROM erased WHERE source_no = {source.no} AND {within}"
        )
        if count := rows["n"][0].as_py():
            records = "1 record" if count == 1 else f"{count:,} records"
            raise StoreError(
                f"can't replay source {source.name!r}: {records} of it had their contents erased "
                "from the store"
            )


def _cut(stretch: Stretch, topics: Topics, part: Slice) -> kafka.Span | None:
    """The part of a stretch between the first and the last position of a slice, if any is."""
    if part.is_empty or stretch.topic not in topics.names:
        return None
    if part.positions is None:
        return stretch.topic, stretch.partition, stretch.start, stretch.end
    number = topics.names.index(stretch.topic)
    ends = (stretch.start, stretch.end - 1)
    low, high = (kafka.place_of(number, stretch.partition, at) for at in ends)
    bounds = contains(part.positions, low, high)
    if bounds is None:
        return None
    first, last = (kafka.where(place)[2] for place in bounds)
    return stretch.topic, stretch.partition, first, last + 1


def joined(spans: Sequence[kafka.Span]) -> list[kafka.Span]:
    """Stretches of a partition that follow on each other as one.

    >>> joined([("t", 0, 0, 5), ("t", 1, 0, 2), ("t", 0, 5, 9)])
    [('t', 0, 0, 9), ('t', 1, 0, 2)]
    """
    found: list[kafka.Span] = []
    for topic, partition, start, end in sorted(spans):
        if found and found[-1][:2] == (topic, partition) and found[-1][3] >= start:
            found[-1] = (topic, partition, found[-1][2], max(end, found[-1][3]))
        else:
            found.append((topic, partition, start, end))
    return found


def _identified(node: nodes.Source, records: DataFrame) -> DataFrame:
    return records.withColumns({RECORD: id_column(node, records), TIME: event_time(node)})


def _timed(node: nodes.Source, frame: DataFrame) -> DataFrame:
    """With the mark of the event time where the source declares a watermark."""
    if node.event_time is None or node.watermark is None:
        return frame
    mark = as_event_time(node.event_time, node.watermark)
    return frame.withColumn(node.event_time, mark)


def _narrowed(node: nodes.Source, frame: DataFrame, part: Slice) -> DataFrame:
    """Only the rows of a slice, by conditions that Spark can push into the files' reader."""
    if part.times is not None:
        assert node.event_time is not None
        time = quoted(node.event_time)
        frame = frame.filter(_any([time.between(_moment(a), _moment(b)) for a, b in part.times]))
    if part.positions is not None:
        frame = frame.filter(_any([F.col(POSITION).between(a, b) for a, b in part.positions]))
    return frame


def may_hold(node: nodes.Source, path: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether a file may have records of some spans of time, as its own statistics say.

    A stream has thousands of small files; opening each in every branch of a plan takes minutes.
    """
    if node.format != "parquet" or "://" in path:
        return True
    try:
        found = pq.read_metadata(path)
        names = [found.schema.column(at).path for at in range(len(found.schema))]
        at = names.index(str(node.event_time))
        # Hours of an unknown place are left to Spark.
        if "isAdjustedToUTC=true" not in str(found.schema.column(at).logical_type):
            return True
        for group in range(found.num_row_groups):
            column = found.row_group(group).column(at)
            told = column.statistics
            if told is None or not told.has_min_max:
                if told is not None and told.null_count == column.num_values:
                    continue  # without a time they are in no span
                return True
            low, high = ((moment - _EPOCH) // _MICROSECOND for moment in (told.min, told.max))
            if any(a <= high and low <= b for a, b in spans):
                return True
    except (OSError, ValueError, TypeError, pa.ArrowException):
        return True
    return False


def _within(column: str, spans: Sequence[tuple[int, int]], form: str) -> str:
    """A condition in SQL that a column lies in one of some spans."""
    either = [f"{column} BETWEEN {form.format(a)} AND {form.format(b)}" for a, b in spans]
    return f"({' OR '.join(either) or 'false'})"


def _any(conditions: list[Column]) -> Column:
    return reduce(or_, conditions, F.lit(False))


def _moment(micros: int) -> Column:
    return F.lit(_EPOCH + timedelta(microseconds=micros))


def _empty(spark: SparkSession, node: nodes.Source) -> DataFrame:
    frame = spark.createDataFrame([], node.schema)
    no_id = F.lit(None).cast("bigint")
    return frame.withColumns({RECORD: no_id, TIME: event_time(node), BATCH: no_id})


def _require(source: Source, uri: str, modified: int) -> None:
    """A file must be there, as it was."""
    path = local(uri)
    if "://" in path:
        return
    try:
        now = os.stat(path).st_mtime_ns // 1_000_000
    except OSError:
        raise gone(source, path) from None
    if now != modified:
        raise StoreError(
            f"can't replay source {source.name!r}: {path} was changed after the flow read it; "
            "put the file back as it was"
        )
