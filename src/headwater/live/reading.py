"""The times of a source's records, read from a micro-batch's own files beside the flow's plan.

A branch of the plan that hands on every record's id and time costs a good part of the plan itself.
Parquet has the two columns apart from all others, so they are read in milliseconds. Where the first
filters leave few records, a branch is the cheaper way, and other formats have no other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import IntegralType, TimestampType

from headwater.flow.first_filters import wanted_first
from headwater.lowering.identity import has_files, id_column
from headwater.lowering.plain import read_again
from headwater.lowering.sources import event_time
from headwater.store.files import local
from headwater.times import NO_TIME

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import SparkSession

    from headwater.flow.nodes import Node, Source
    from headwater.live.graph import Ints

_CHOOSING = frozenset(
    {
        "maxfilespertrigger",
        "maxbytespertrigger",
        "maxcachedfiles",
        "maxfileage",
        "latestfirst",
        "filenameonly",
        "pathglobfilter",
        "recursivefilelookup",
        "modifiedbefore",
        "modifiedafter",
    }
)
"""Options that say which files are read, not how."""


def times_in_files(source: Source, sinks: Iterable[Node]) -> bool:
    """Whether the times of a source's records are best read from its files."""
    if not (source.streaming and has_files(source) and source.format == "parquet"):
        return False
    if source.identity.how != "column" or source.keep != "none" or source.event_time is None:
        return False
    (name,) = source.identity.columns
    return (
        isinstance(source.schema[name].dataType, IntegralType)
        and isinstance(source.schema[source.event_time].dataType, TimestampType)
        and all(option.lower() in _CHOOSING for option, _ in source.options)
        and wanted_first(source, sinks) is None
    )


def read_times(source: Source, uris: Sequence[str], spark: SparkSession) -> tuple[Ints, Ints]:
    """The ids and times (µs) of the records in some files of a source."""
    found = [_plainly(source, path) for path in map(local, uris)]
    tables = [table for table in found if table is not None]
    others = [uri for uri, table in zip(uris, found, strict=True) if table is None]
    if others:
        tables.append(_by_spark(source, others, spark))
    ids = [table["id"].to_numpy() for table in tables]
    times = [table["time"].fill_null(NO_TIME).to_numpy() for table in tables]
    empty = np.empty(0, np.int64)
    return np.concatenate([empty, *ids]), np.concatenate([empty, *times])


def _plainly(source: Source, path: str) -> pa.Table | None:
    """A file's ids and times, if both columns are such that no reader could take them otherwise."""
    assert source.event_time is not None
    names = [source.identity.columns[0], source.event_time]
    try:
        with pq.ParquetFile(path) as file:
            leaves = map(file.schema.column, range(len(file.schema)))
            columns = {leaf.path: leaf for leaf in leaves}
            if not all(name in columns for name in names) or not _is_instant(columns[names[1]]):
                return None
            if not pa.types.is_integer(file.schema_arrow.field(names[0]).type):
                return None
            rows = file.read(columns=names)
    except (OSError, pa.ArrowException):
        return None
    ids = rows[names[0]].cast(pa.int64())
    if ids.null_count:
        return None
    times = rows[names[1]].cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    return pa.table({"id": ids, "time": times})


def _is_instant(column: pq.ColumnSchema) -> bool:
    """Whether a column has points in time, not hours of an unknown place."""
    if column.physical_type == "INT96":
        return True
    return column.logical_type.type == "TIMESTAMP" and "isAdjustedToUTC=true" in str(
        column.logical_type
    )


def _by_spark(source: Source, uris: Sequence[str], spark: SparkSession) -> pa.Table:
    """The same by Spark's own reader, which knows every type and names what is wrong."""
    records = read_again(spark, source, [local(uri) for uri in uris])
    rows = records.select(
        id_column(source, records).alias("id"), event_time(source).alias("time", metadata={})
    ).toArrow()
    times = rows["time"].cast(pa.timestamp("us")).cast(pa.int64())
    return pa.table({"id": rows["id"], "time": times})
