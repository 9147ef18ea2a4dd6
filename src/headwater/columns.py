"""Spark columns by name, the hash that makes ids of them, and rows by their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame


def quoted(name: str) -> Column:
    """A column by its exact name, whatever characters it has."""
    return F.col(f"`{name.replace('`', '``')}`")


FEW_VALUES = 1_000
"""As many values go into a condition; more are joined."""


def with_ids(df: DataFrame, column: str, ids: Iterable[int]) -> DataFrame:
    """The rows whose id is one of some."""
    values = np.unique(np.asarray(ids, np.int64))
    if len(values) <= FEW_VALUES:
        return df.filter(quoted(column).isin(values.tolist()))
    wanted = df.sparkSession.createDataFrame(pa.table({column: values}))
    return df.join(F.broadcast(wanted), column, "left_semi")


def identity_hash(fields: Iterable[StructField]) -> Column:
    """xxhash64 of columns, different for different values of them.

    Spark's own skips nulls, so that (null, 5) and (5, null) hash alike, and runs the elements
    of arrays together. So which columns are null is hashed first, and what has parts goes as
    JSON; a window, whose two parts are never null, as it is.
    """
    given = list(fields)
    nulls = [quoted(f.name).isNull() for f in given if not is_window(f.dataType)]
    return F.xxhash64(*nulls, *(_hashable(f) for f in given))


def _hashable(field: StructField) -> Column:
    column = quoted(field.name)
    match field.dataType:
        case StructType() if is_window(field.dataType):
            return column
        case StructType() | ArrayType() | MapType():
            return F.to_json(F.struct(column))
    return column


def is_window(data_type: DataType) -> bool:
    """Whether a type is that of Spark's windows: a start and an end."""
    return isinstance(data_type, StructType) and data_type.names == ["start", "end"]
