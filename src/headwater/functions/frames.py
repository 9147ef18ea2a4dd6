"""Rows between Arrow and what a user's function takes and gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_type

if TYPE_CHECKING:
    from pyspark.sql.types import StructField, StructType

Takes = Literal["pandas", "batch", "table"]


def given(rows: pa.StructArray, takes: Takes) -> Any:
    """Rows as a function takes them."""
    batch = pa.RecordBatch.from_struct_array(rows)
    match takes:
        case "batch":
            return batch
        case "table":
            return pa.Table.from_batches([batch])
    return as_pandas(batch)


def as_pandas(batch: pa.RecordBatch) -> pd.DataFrame:
    """Rows as PySpark gives them to functions: times are those of the session's time zone."""
    frame: pd.DataFrame = batch.to_pandas()
    for field in batch.schema:
        if pa.types.is_timestamp(field.type) and field.type.tz is not None:
            frame[field.name] = frame[field.name].dt.tz_localize(None)
    return frame


@dataclass(frozen=True, slots=True)
class Shape:
    """What a function must give: columns of a schema. `where` names the step in errors."""

    schema: StructType
    timezone: str
    where: str

    @property
    def type(self) -> pa.StructType:
        """The schema as Arrow's type."""
        return pa.struct([pa.field(f.name, _type(f), f.nullable) for f in self.schema.fields])

    def array(self, made: Any, rows: int | None = None) -> pa.StructArray:
        """What a function gave, as an array of `rows` rows."""
        columns = self._columns(made)
        number = rows
        for name, values in columns.items():
            found = len(values)
            if number is None:
                number = found
            if found != number:
                if rows is not None:
                    raise ValueError(
                        f"{self.where}: the function gave {found} rows for {rows}; it must give "
                        "one for each, in the same order"
                    )
                raise ValueError(f"{self.where}: column {name!r} has {found} rows, not {number}")
        arrays = [self._array(columns[f.name], f) for f in self.schema.fields]
        return pa.StructArray.from_arrays(arrays, fields=list(self.type))

    def _columns(self, made: Any) -> dict[str, Any]:
        columns: dict[str, Any]
        match made:
            case pd.DataFrame():
                if not made.columns.is_unique:
                    raise ValueError(f"{self.where}: the function gave two columns of one name")
                columns = {str(name): made[name] for name in made.columns}
            case pa.RecordBatch() | pa.Table():
                columns = dict(zip(made.schema.names, made.columns, strict=True))
            case Mapping():
                columns = dict(made)
            case _:
                raise TypeError(
                    f"{self.where}: the function gave a {type(made).__name__}, not a DataFrame, "
                    "an Arrow table or a dict of columns"
                )
        names = self.schema.fieldNames()
        if unknown := [name for name in columns if name not in names]:
            raise ValueError(
                f"{self.where}: the function gave columns {unknown}, which its schema lacks"
            )
        if missing := [name for name in names if name not in columns]:
            raise ValueError(f"{self.where}: the function gave no columns {missing}")
        for name, values in columns.items():
            if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
                raise TypeError(
                    f"{self.where}: column {name!r} is a {type(values).__name__}, not a sequence"
                )
        return columns

    def _array(self, values: Any, field: StructField) -> pa.Array:
        try:
            array = self._converted(values, _type(field))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            said = " ".join(str(error).split())
            raise TypeError(
                f"{self.where}: column {field.name!r} is not {field.dataType.simpleString()}: "
                f"{said}"
            ) from error
        if array.null_count and not field.nullable:
            raise ValueError(
                f"{self.where}: column {field.name!r} has nulls, which its schema bars"
            )
        return array

    def _converted(self, values: Any, wanted: pa.DataType) -> pa.Array:
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if isinstance(values, pa.Array):
            if _is_text(values.type) != _is_text(wanted) and not pa.types.is_null(values.type):
                raise TypeError(f"it is {values.type}")
            if pa.types.is_timestamp(wanted) and _is_naive(values.type) and wanted.tz:
                values = pc.assume_timezone(values, self.timezone)
            return values.cast(wanted)
        if not len(values):
            return pa.array([], wanted)
        if pa.types.is_timestamp(wanted) and wanted.tz:
            values = self._zoned(values)
        if _is_whole(wanted) and getattr(values, "dtype", None) in (None, np.dtype(object)):
            # Of Python's own numbers Arrow cuts fractions off in silence, but not when it casts.
            return self._converted(pa.array(values, from_pandas=True), wanted)
        if isinstance(values, pd.Series):
            return pa.Array.from_pandas(values, type=wanted)
        return pa.array(values, type=wanted, from_pandas=True)

    def _zoned(self, values: Any) -> pd.Series:
        """Times with their zone; those without one are of the session's."""
        times = values if isinstance(values, pd.Series) else pd.Series(values)
        if not pd.api.types.is_datetime64_any_dtype(times.dtype):
            if pd.api.types.is_numeric_dtype(times.dtype) and times.notna().any():
                raise TypeError(f"it is {times.dtype}")
            times = pd.to_datetime(times)
        if times.dt.tz is None:
            # Of an hour that comes twice the second is meant, as in PySpark.
            second = np.zeros(len(times), bool)
            times = times.dt.tz_localize(self.timezone, second, nonexistent="shift_forward")
        return times


def _type(field: StructField) -> pa.DataType:
    return to_arrow_type(field.dataType, timezone="UTC", prefers_large_types=False)


def _is_whole(kind: pa.DataType) -> bool:
    """Whether a type is of whole numbers, or of lists of them."""
    return bool(pa.types.is_integer(kind.value_type if pa.types.is_list(kind) else kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_naive(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind)) and kind.tz is None
