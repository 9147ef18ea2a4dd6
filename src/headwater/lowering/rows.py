"""Pieces that lowerings share: names, hashes, Python functions over rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from headwater.columns import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from headwater.flow.nodes import FlatMap

S = TypeVar("S", bound=DataType)

ROW = "__hw_row"
ORDINAL = "__hw_ordinal"


def nullable(data_type: S) -> S:
    """The type with nulls allowed throughout: the rows of a union must all be of one type."""
    match data_type:
        case StructType():
            fields = [StructField(f.name, nullable(f.dataType)) for f in data_type.fields]
            return cast("S", StructType(fields))
        case ArrayType():
            return cast("S", ArrayType(nullable(data_type.elementType)))
        case MapType():
            key, value = nullable(data_type.keyType), nullable(data_type.valueType)
            return cast("S", MapType(key, value))
    return data_type


def flat_mapped(
    df: DataFrame, node: FlatMap, columns: Sequence[str], *, carry: Iterable[str]
) -> DataFrame:
    """A Python function applied to each row: its rows, beside the columns to keep and to carry.

    The function makes an array, which Spark explodes: so that every other column passes
    natively, the event-time column with its watermark too.
    """
    function = _rows_of(node.function, node.schema, node.step)
    udf = arrow_udf(function, ArrayType(node.schema))  # type: ignore[call-overload]
    made = udf(F.struct(*map(quoted, columns)))
    passed = [quoted(name) for name in (*node.keep, *carry)]
    exploded = df.withColumn(ROW, made).select(*passed, F.posexplode(ROW).alias(ORDINAL, ROW))
    return exploded.select(*passed, ORDINAL, f"{ROW}.*")


def _rows_of(
    function: Callable[[Any], Any], schema: StructType, step: str
) -> Callable[[pa.Array], pa.Array]:
    names = schema.fieldNames()
    arrow_type = to_arrow_type(ArrayType(schema), prefers_large_types=False)

    def as_dict(made: Any) -> dict[str, Any]:
        if isinstance(made, Row):
            made = made.asDict() if hasattr(made, "__fields__") else tuple(made)
        values = made if isinstance(made, dict) else dict(zip(names, made, strict=True))
        unknown = set(values) - set(names)
        if unknown:
            raise ValueError(
                f"flat_map {step}: the function made columns {sorted(unknown)} not in its schema"
            )
        return values

    def apply(batch: pa.Array) -> pa.Array:
        fields = [f.name for f in batch.type]
        maker = Row(*fields)
        out = [
            [as_dict(made) for made in function(maker(*(row[f] for f in fields)))]
            for row in batch.to_pylist()
        ]
        return pa.array(out, type=arrow_type)

    # arrow_udf reads the kind of function from its annotations, which must be real types.
    apply.__annotations__ = {"batch": pa.Array, "return": pa.Array}
    return apply
