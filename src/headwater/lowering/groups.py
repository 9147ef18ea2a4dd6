"""Groups of rows: what is collected of them, which of them count, what functions make of them.

Where only some rows of a group count, the group's rows are collected with their annotations, and
those of the rows that count are made one at the end. A mode that has nothing to tell rows apart by
(`intervals`, `ancestors`) takes the whole group: a replay sorts it out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    MapType,
    StructType,
    VariantType,
)

from headwater.columns import quoted
from headwater.flow import nodes
from headwater.flow.concise import extreme
from headwater.flow.expressions import generator_argument
from headwater.functions.groups import NO_KEY, group_function
from headwater.lowering.functions import shape_of
from headwater.lowering.rows import ORDINAL, ROW
from headwater.names import KEY, TIME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.lowering.traced import Traced
    from headwater.lowering.tracing import Tracing

ROWS, MADE, BEST = "__hw_rows", "__hw_made", "__hw_best_"
AT, GIVEN, HELD, VALUE = "at", "row", "held_", "value_"
"""Fields of a collected row: where it stands, what a function gets of it, annotations, values."""


@dataclass(frozen=True, slots=True)
class Contents:
    """A group's aggregates, and what is made of them: first `lists`, then `made`."""

    aggregates: list[Column]
    lists: dict[str, Column] = field(default_factory=dict)
    made: dict[str, Column] = field(default_factory=dict)
    spent: tuple[str, ...] = ()
    """Columns that are of no use after that."""


def contents(mode: Tracing, node: nodes.Aggregate, rows: Traced) -> Contents:
    """What is collected of a group's rows."""
    held = mode.carried(rows)
    own = [e.column for e in node.columns]
    if isinstance(node, nodes.GroupFunction):
        own = [
            _collected([F.col(TIME), F.col(KEY)], rows.columns, held if node.contributing else ())
        ]
        if node.contributing and held:
            return Contents([*own, *_without_origins(mode, rows)])
    elif node.concise and held:
        return _deciding(mode, node, rows, held)
    collected, made = mode.collected(rows)
    return Contents([*own, *collected], made=made)


def _without_origins(mode: Tracing, rows: Traced) -> list[Column]:
    """What a mode collects beside the records that rows come from."""
    return mode.collected(replace(rows, origins={}))[0]


def _deciding(mode: Tracing, node: nodes.Aggregate, rows: Traced, held: Sequence[str]) -> Contents:
    """A group's least or greatest values, with the annotations of the rows that have them."""
    values = [generator_argument(expr) for expr in node.columns]
    ends = [extreme(expr) for expr in node.columns]
    best = [
        (F.max if end is not None and end[0] == "max" else F.min)(value).alias(f"{BEST}{i}")
        for i, (end, value) in enumerate(zip(ends, values, strict=True))
    ]
    entry = F.struct(
        *(value.alias(f"{VALUE}{i}") for i, value in enumerate(values)),
        *(quoted(name).alias(f"{HELD}{i}") for i, name in enumerate(held)),
    )
    found = [F.col(f"{BEST}{i}") for i in range(len(values))]

    def decides(row: Column) -> Column:
        return reduce(or_, [row[f"{VALUE}{i}"] == b for i, b in enumerate(found)])

    # A null is no value: where no aggregate has one, nothing decides, and the whole group counts.
    nothing = reduce(and_, [b.isNull() for b in found])
    chosen = F.when(nothing, F.col(ROWS)).otherwise(F.filter(ROWS, decides))
    return Contents(
        [
            *(e.column for e in node.columns),
            F.collect_list(entry).alias(ROWS),
            *best,
            *_without_origins(mode, rows),
        ],
        lists=_lists(chosen, held),
        made=mode.collected(rows)[1],
        spent=(ROWS, *(f"{BEST}{i}" for i in range(len(values)))),
    )


def _lists(chosen: Column, held: Sequence[str]) -> dict[str, Column]:
    """The annotations of some collected rows as lists, the way that an aggregate collects them."""

    def listed(name: str) -> Column:
        return F.filter(F.transform(chosen, lambda row: row[name]), lambda v: v.isNotNull())

    return {name: listed(f"{HELD}{i}") for i, name in enumerate(held)}


def _collected(at: Sequence[Column], columns: Sequence[str], held: Sequence[str]) -> Column:
    """The rows of a group as an array of structs."""
    entry = F.struct(
        F.struct(*at).alias(AT),
        F.struct(*map(quoted, columns)).alias(GIVEN),
        *(quoted(name).alias(f"{HELD}{i}") for i, name in enumerate(held)),
    )
    return F.collect_list(entry).alias(ROWS)


def applied(mode: Tracing, node: nodes.GroupFunction, rows: Traced, groups: Traced) -> Traced:
    """The rows that a function makes of groups, with their annotations."""
    positions = node.contributing
    held = mode.carried(rows) if positions is not None else ()
    annotations = [name for name in groups.annotations if name != ROWS]
    passed = [*node.keep, *annotations, *([ROWS] if held else [])]
    df = _made(groups.df, node, forgiving=mode.forgiving).select(
        *map(quoted, passed), F.posexplode(MADE).alias(ORDINAL, ROW)
    )
    df = df.withColumn(KEY, F.xxhash64(KEY, ORDINAL))
    if held and positions is not None:
        chosen = F.transform(F.col(ROW)[positions], lambda at: F.get(ROWS, at.cast("int")))
        df = df.withColumns(_lists(chosen, held)).withColumns(mode.collected(rows)[1])
    carried = dict.fromkeys((*annotations, *held))
    return groups.with_df(_results(df, node, tuple(carried)))


def applied_plainly(node: nodes.GroupFunction, df: DataFrame) -> DataFrame:
    """The rows of a function without annotations: what Spark takes them for, never run.

    The order in which a function sees its rows needs their keys, which only tracing lowerings have.
    """
    keys = (e.column for e in node.keys)
    rows = _collected([F.lit(0)], df.columns, ())
    made = _made(df.groupBy(*keys).agg(rows), node)
    exploded = made.select(*map(quoted, node.keep), F.posexplode(MADE).alias(ORDINAL, ROW))
    return _results(exploded, node, ())


def _made(groups: DataFrame, node: nodes.GroupFunction, *, forgiving: bool = False) -> DataFrame:
    """Groups with the array of rows that the function makes of each."""
    shape = shape_of(groups, node.schema, "applyInPandas", node.step)
    function = group_function(
        node.function,
        shape,
        with_key=node.with_key,
        contributing=node.contributing,
        forgiving=forgiving,
    )
    udf = arrow_udf(function, ArrayType(node.schema))  # type: ignore[call-overload]
    names = groups.columns[: len(node.keys)]
    key = F.struct(*map(quoted, names)) if names else F.struct(F.lit(0).alias(NO_KEY))
    df = groups.withColumn(ROWS, _in_order(groups.schema[ROWS].dataType))
    return df.withColumn(MADE, udf(key, F.transform(ROWS, lambda row: row[GIVEN])))


def _results(df: DataFrame, node: nodes.GroupFunction, carry: Sequence[str]) -> DataFrame:
    made = [F.col(ROW)[name].alias(name) for name in node.made]
    return df.select(*map(quoted, node.keep), *made, *map(quoted, carry))


def _in_order(rows: DataType) -> Column:
    """The rows of a group by event time, then by their keys."""
    if _is_sortable(rows):
        return F.sort_array(ROWS)

    def compared(a: Column, b: Column) -> Column:
        return F.when(a[AT] < b[AT], -1).when(a[AT] > b[AT], 1).otherwise(0)

    return F.array_sort(ROWS, compared)


def _is_sortable(kind: DataType) -> bool:
    """Whether Spark can sort values of a type."""
    match kind:
        case StructType():
            return all(_is_sortable(f.dataType) for f in kind.fields)
        case ArrayType():
            return _is_sortable(kind.elementType)
    return not isinstance(kind, MapType | VariantType | CalendarIntervalType)
