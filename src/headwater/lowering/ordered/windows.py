"""Count and value windows: one row for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType, LongType, StructField, StructType, TimestampType

from headwater.columns import quoted
from headwater.flow import nodes
from headwater.lowering.ordered.arriving import Arrived, arrived
from headwater.lowering.ordered.hosting import hosted
from headwater.lowering.shapes import windows_shape
from headwater.lowering.traced import Traced, appended
from headwater.names import GROUP, KEY, NUMBER, TIME
from headwater.ordered.windows import CountWindows, Made, Results, ValueWindows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column

    from headwater.lowering.tracing import Tracing
    from headwater.ordered.step import Step

ARGUMENT = "__hw_argument_"
VALUE = "__hw_value"

Windows = nodes.CountWindow | nodes.ValueWindow


def windows(tracing: Tracing, node: Windows, rows: Traced) -> Traced:
    """The windows of a step, with the annotations of their rows."""
    shape = windows_shape(node, rows.df).schema.fields
    ready = arrived(node, rows, node.by)
    lists = tracing.carried(rows)
    arguments = _arguments(node)
    df = ready.df.withColumns(arguments)
    made = shape[len(node.by) :]
    results = Results(
        ready.keys,
        tuple(
            Made(f"{ARGUMENT}{i}", each.function, _if(each, f"{ARGUMENT}{i}"), arrow_type(field))
            for i, (each, field) in enumerate(zip(node.columns, made, strict=True))
        ),
        lists,
        ready.orders,
    )
    sent = dict.fromkeys((GROUP, *ready.sorted_by, TIME, *ready.keys, *arguments, *lists))
    done = hosted(
        df.select(*map(quoted, sent)),
        _step(node, results),
        sort=ready.sorted_by,
        schema=_schema(ready, shape, len(node.by), [df.schema[name] for name in lists]),
        keyed=bool(node.by),
    )
    _, sets = tracing.collected(rows)
    places = (*ready.keys, *(f"{ARGUMENT}{i}" for i in range(len(made))))
    own = [
        quoted(place).alias(field.name, metadata=field.metadata)
        for place, field in zip(places, shape, strict=True)
    ]
    df = done.withColumns(sets).select(
        *own,
        *map(quoted, lists),
        F.xxhash64(GROUP, NUMBER).alias(KEY),
        F.col(TIME),
        *map(quoted, ready.orders),
        F.col(NUMBER),
    )
    made_of = dict.fromkeys(rows.origins, True)
    out = Traced(df, made_of, unique=True, orders=ready.orders)
    if isinstance(node, nodes.ValueWindow):  # one row may close several of them
        out = appended(out, F.col(NUMBER))
    return out.without(NUMBER)


def _arguments(node: Windows) -> dict[str, Column]:
    """What the aggregates are of, and what a value window is over, as columns."""
    made = {
        f"{ARGUMENT}{i}": each.argument.column
        for i, each in enumerate(node.columns)
        if each.argument is not None
    }
    return {**made, VALUE: node.on.column} if isinstance(node, nodes.ValueWindow) else made


def _if(each: nodes.Aggregated, name: str) -> str | None:
    return None if each.argument is None else name


def _step(node: Windows, results: Results) -> Step:
    if isinstance(node, nodes.CountWindow):
        return CountWindows(node.size, node.slide, results)
    return ValueWindows(node.size, node.slide, VALUE, results)


def _schema(
    ready: Arrived, shape: list[StructField], keys: int, lists: list[StructField]
) -> StructType:
    """What comes out of the step."""
    fixed = [StructField(GROUP, LongType()), StructField(NUMBER, LongType())]
    fixed += [StructField(TIME, TimestampType()), *ready.fields(*ready.orders)]
    by = [StructField(n, f.dataType) for n, f in zip(ready.keys, shape[:keys], strict=True)]
    made = [StructField(f"{ARGUMENT}{i}", f.dataType) for i, f in enumerate(shape[keys:])]
    collected = [StructField(f.name, ArrayType(f.dataType)) for f in lists]
    return StructType([*fixed, *by, *made, *collected])


def arrow_type(field: StructField) -> pa.DataType:
    """The Arrow type of a column of Spark's."""
    return to_arrow_type(field.dataType, timezone="UTC", prefers_large_types=False)
