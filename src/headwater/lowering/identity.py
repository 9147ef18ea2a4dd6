"""The id of a source's record, as a Spark column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headwater.columns import identity_hash, quoted

if TYPE_CHECKING:
    from headwater.flow.nodes import Source

FILE_BITS = 31
ROW_BITS = 32


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


def file_key() -> Column:
    """A file's number in positional ids: 31 bits of a hash of its path, kept in the store."""
    mask = (1 << FILE_BITS) - 1
    return F.xxhash64(F.col("_metadata.file_path")).bitwiseAND(F.lit(mask).cast("bigint"))
