"""The id of a source's record, as a Spark column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headwater.columns import identity_hash, quoted
from headwater.flow.kafka import Topics
from headwater.flow.sourcing import FILE_FORMATS
from headwater.lowering.kafka import in_topics, place_column
from headwater.store.files import FILE_BITS, ROW_BITS

if TYPE_CHECKING:
    from headwater.flow.nodes import Source


def id_column(node: Source, records: DataFrame) -> Column:
    """The id of each record: a bigint, the same after a restart and on replay."""
    match node.identity.how:
        case "column":
            (name,) = node.identity.columns
            value = quoted(name).cast("bigint")
            if not records.schema[name].nullable:
                return value
            # A record without an id would silently be missing from every set.
            missing = f"source {node.name!r}: a record has no id, column {name!r} is null"
            return F.coalesce(value, F.raise_error(F.lit(missing)).cast("bigint"))
        case "hash":
            return identity_hash(records.schema[c] for c in node.identity.columns)
        case "content":
            return identity_hash(records.schema.fields)
        case "position":
            return F.shiftleft(file_key(), ROW_BITS).bitwiseOR(F.col("_metadata.row_index"))
        case "offset":
            return place_column(Topics.of(node))


def file_key() -> Column:
    """A file's number in positional ids: 31 bits of a hash of its path, kept in the store."""
    mask = (1 << FILE_BITS) - 1
    return F.xxhash64(F.col("_metadata.file_path")).bitwiseAND(F.lit(mask).cast("bigint"))


POSITION_ROW_BITS = 23
POSITION_EPOCH_MS = 1_420_070_400_000  # 2015: what file times are counted from
_LAST_ROW = (1 << POSITION_ROW_BITS) - 1
_LAST_TIME = (1 << 40) - 1


def position_column(node: Source) -> Column:
    """Where a record stands in the order of arrival: an integer, never a hash.

    Of files it is the file's time, in which order Spark takes them, and the row in it where the
    format tells; of topics it is the message's place; elsewhere an integer id has to do. Rows past
    the last number share it, and so do times before the first: intervals then cover more than they
    need, never less.
    """
    if in_topics(node):
        return place_column(Topics.of(node))
    if not has_files(node):
        return quoted(node.identity.columns[0]).cast("bigint")
    time = F.unix_millis(F.col("_metadata.file_modification_time")) - F.lit(POSITION_EPOCH_MS)
    place = F.shiftleft(F.greatest(F.least(time, F.lit(_LAST_TIME)), F.lit(0)), POSITION_ROW_BITS)
    if node.format != "parquet":
        return place
    return place.bitwiseOR(F.least(F.col("_metadata.row_index"), F.lit(_LAST_ROW)))


def arrival_column(node: Source) -> Column:
    """What a micro-batch's records are sorted by to stand in the order of their arrival."""
    if in_topics(node) or (has_files(node) and node.format == "parquet"):
        return position_column(node)
    return quoted(node.identity.columns[0]).cast("bigint")


def arrives_in_order(node: Source) -> bool:
    """Whether a source's records have such a column."""
    in_order = in_topics(node) or (has_files(node) and node.format == "parquet")
    return in_order or node.identity.how == "column"


def file_positions(modified_ms: int) -> tuple[int, int]:
    """The first and the last position in a file, as `position_column` computes them."""
    time = max(min(modified_ms - POSITION_EPOCH_MS, _LAST_TIME), 0)
    return time << POSITION_ROW_BITS, (time << POSITION_ROW_BITS) | _LAST_ROW


def has_files(node: Source) -> bool:
    """Whether a source's records lie in files that Headwater can list."""
    return node.df is None and node.format in FILE_FORMATS


def has_positions(node: Source) -> bool:
    """Whether a source's records have a place in an order."""
    return can_be_read_again(node) or node.identity.how == "column"


def can_be_read_again(node: Source) -> bool:
    """Whether a source's records lie where a replay can read them once more."""
    return has_files(node) or in_topics(node)
