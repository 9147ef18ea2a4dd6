"""What becomes of a row that holds a record: one of a few kinds of fate, told by the step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    CalendarIntervalType,
    DataType,
    StructType,
    TimestampType,
    VariantType,
)

from headwater.columns import is_window, quoted
from headwater.names import PREFIX, TIME

if TYPE_CHECKING:
    from datetime import datetime

REACHED = "reached"
LATE = "late"
FILTERED = "filtered"
NOTHING = "nothing"
OPEN = "open"
UNMATCHED = "unmatched"
DUPLICATE = "duplicate"
PASSED_OVER = "passed_over"
UNREAD = "unread"

KINDS = {
    REACHED: "it is part of a result",
    LATE: "it came when the watermark had passed it, or the window that it belongs to",
    FILTERED: "a filter's condition did not hold",
    NOTHING: "the step made no row of it: an empty array, a function without output, no time",
    OPEN: "it waits: for its window to close, or for a partner",
    UNMATCHED: "a join found no partner, and none can come any more",
    DUPLICATE: "a deduplication kept another row in its place",
    PASSED_OVER: "it was in a group whose result is said to come from other rows",
    UNREAD: "it is in the source, but no committed batch has read it",
}
"""Every kind of fate, with what it says of the record."""

ARRIVED, TIED, TIES = "arrived", "tied", "ties"
"""Told beside fates: that a record was read, and that it, or any row, had an equal claim in a
deduplication with others of its batch."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of one row that held the record."""

    step: str
    kind: str
    event_time: datetime | None = None
    watermark: datetime | None = None
    closes_at: datetime | None = None
    other: str | None = None
    """The records that a deduplication kept, in words."""
    survivor: int | None = None
    """The record of the same source that it kept, if it was one."""
    result: int | None = None
    side: int | None = None
    """Which input of a join the row was of."""
    values: str = "{}"


@dataclass(frozen=True, slots=True)
class Telling:
    """The columns of a fate that differ from kind to kind."""

    kind: Column
    watermark: Column | None = None
    closes_at: Column | None = None
    other: Column | None = None
    survivor: Column | None = None
    result: Column | None = None
    side: int | None = None


def told(df: DataFrame, step: str, telling: Telling) -> DataFrame:
    """Rows as fates, in the one shape that all have."""

    def or_null(column: Column | None, kind: str) -> Column:
        return (F.lit(None) if column is None else column).cast(kind)

    return df.select(
        F.lit(step).alias("step"),
        telling.kind.alias("kind"),
        F.col(TIME).cast("timestamp").alias("event_time", metadata={}),
        or_null(telling.watermark, "timestamp").alias("watermark"),
        or_null(telling.closes_at, "timestamp").alias("closes_at", metadata={}),
        or_null(telling.other, "string").alias("other"),
        or_null(telling.survivor, "bigint").alias("survivor"),
        or_null(telling.result, "bigint").alias("result"),
        F.lit(telling.side).cast("int").alias("side"),
        F.col(VALUES).alias("values"),
    )


VALUES = "__hw_values"


def numbered(df: DataFrame) -> DataFrame:
    """The same rows, with columns of one name numbered: both sides of a join may have it."""
    names: list[str] = []
    for place, name in enumerate(df.columns):
        again = df.columns[:place].count(name)
        names.append(name if not again else f"{name} ({again + 1})")
    return df.toDF(*names)


def with_values(df: DataFrame) -> DataFrame:
    """The rows with their own columns as JSON; columns of one name are numbered."""
    named = numbered(df)
    own = [f for f in named.schema.fields if not f.name.startswith(PREFIX)]
    shown = [_shown(quoted(f.name), f.dataType).alias(f.name) for f in own]
    options = {"ignoreNullFields": "false"}
    json = F.to_json(F.struct(*shown), options) if shown else F.lit("{}")
    return named.withColumn(VALUES, json)


def _shown(column: Column, kind: DataType) -> Column:
    """A value as JSON has it: times in UTC whatever the session's zone, to the microsecond."""
    match kind:
        case TimestampType():
            # By arithmetic on the moment: a text in local time may mean two moments.
            seconds = (F.unix_micros(column).cast("decimal(18,0)") / 1_000_000).cast(
                "decimal(18,6)"
            )
            epoch = F.lit("1970-01-01").cast("timestamp_ntz")
            utc = epoch + F.make_dt_interval(F.lit(0), F.lit(0), F.lit(0), seconds)
            return F.concat(F.translate(utc.cast("string"), " ", "T"), F.lit("Z"))
        case StructType() if is_window(kind):
            ends = [_shown(column[f.name], f.dataType).alias(f.name) for f in kind.fields]
            return F.when(column.isNotNull(), F.struct(*ends))
        case CalendarIntervalType() | VariantType():
            return column.cast("string")
    return column
