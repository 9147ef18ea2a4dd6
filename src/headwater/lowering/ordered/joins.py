"""Joins by what has arrived before: both sides' rows in one order, pairs out of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from headwater.columns import quoted
from headwater.flow import nodes
from headwater.flow.expressions import named
from headwater.lowering.ordered.arriving import arrived
from headwater.lowering.ordered.hosting import hosted
from headwater.lowering.shapes import joined_columns, timed_side
from headwater.lowering.traced import LEFT, RIGHT, appended
from headwater.names import (
    GROUP,
    KEY,
    LEFT_ROW,
    NUMBER,
    ORDER,
    PREFIX,
    RIGHT_ROW,
    SIDE,
    TIME,
)
from headwater.ordered.joins import VALUE, Last, LastJoin, LatestJoin, ValueJoin

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from headwater.lowering.traced import Traced
    from headwater.lowering.tracing import Tracing
    from headwater.ordered.step import Step

ROWS = (LEFT_ROW, RIGHT_ROW)
PREFIXES = (LEFT, RIGHT)


def join(tracing: Tracing, node: nodes.OrderedJoin, left: Traced, right: Traced) -> Traced:
    """The pairs of a step, with the annotations of both partners."""
    sides = (left, right)
    given = (node.order_by, node.right_order_by)
    depth = max(len(g) + len(rows.orders) for g, rows in zip(given, sides, strict=True))
    orders = tuple(f"{ORDER}{i}" for i in range(depth))
    kinds = [_row(rows, prefix) for rows, prefix in zip(sides, PREFIXES, strict=True)]
    frames = [_side(node, number, rows, orders, kinds) for number, rows in enumerate(sides)]
    df = frames[0].unionByName(frames[1])
    both = [StructField(name, kind) for name, kind in zip(ROWS, kinds, strict=True)]
    made = [*(df.schema[o] for o in orders), StructField(NUMBER, LongType()), *both]
    done = hosted(
        df,
        _step(node, orders),
        sort=(*orders, SIDE, KEY),
        schema=StructType(made),
        keyed=bool(node.on),
    )
    pairs = done.select(
        *_own(node, sides),
        *(
            F.col(row).getField(field.name).alias(field.name)
            for row, kind in zip(ROWS, kinds, strict=True)
            for field in kind.fields
            if field.name.startswith(PREFIX)
        ),
        *map(quoted, orders),
        F.col(NUMBER),
    )
    out = replace(tracing.pairs(node, pairs, left, right), orders=orders)
    if not isinstance(node, nodes.JoinLatest):  # one row may make several pairs
        out = appended(out, F.col(NUMBER))
    return out.without(NUMBER)


def _row(rows: Traced, prefix: str) -> StructType:
    """A side's row as one value: its columns, its annotations under the side's prefix."""
    return StructType(
        [
            StructField(prefix + f.name if f.name.startswith(PREFIX) else f.name, f.dataType)
            for f in rows.df.schema.fields
            if f.name not in rows.orders
        ]
    )


def _side(
    node: nodes.OrderedJoin,
    number: int,
    rows: Traced,
    orders: tuple[str, ...],
    kinds: list[StructType],
) -> DataFrame:
    """One side's rows in the shape that both share."""
    order_by = node.right_order_by if number else node.order_by
    ready = arrived(node, rows, [named(name) for name in node.on], order_by)
    own = F.struct(*(quoted(f.name) for f in rows.df.schema.fields if f.name not in rows.orders))
    values: list[Column] = []
    if isinstance(node, nodes.JoinValue):
        values.append((node.right_on if number else node.left_on).column.alias(VALUE))
    return ready.df.select(
        GROUP,
        F.lit(number).cast("bigint").alias(SIDE),
        KEY,
        TIME,
        *(quoted(o) if o in ready.orders else F.lit(None).cast("bigint").alias(o) for o in orders),
        *values,
        *(
            (own if i == number else F.lit(None)).cast(kind).alias(ROWS[i])
            for i, kind in enumerate(kinds)
        ),
    )


def _own(node: nodes.OrderedJoin, sides: tuple[Traced, Traced]) -> list[Column]:
    """The user's columns of a pair; one side's event time is the pair's for Spark."""
    columns = joined_columns(node, *(rows.columns for rows in sides))
    return [
        F.col(ROWS[side])
        .getField(name)
        .alias(
            name,
            metadata=sides[side].df.schema[name].metadata if side == timed_side(node) else {},
        )
        for side, name in columns
    ]


def _step(node: nodes.OrderedJoin, order: tuple[str, ...]) -> Step:
    match node:
        case nodes.JoinLatest():
            return LatestJoin(1 if node.clock == "right" else 0, node.how == "left_outer", order)
        case nodes.JoinLast(left=left, right=right):
            return LastJoin(Last(left.rows, left.time), Last(right.rows, right.time), order)
        case nodes.JoinValue(size=size):
            return ValueJoin(size, order)
    raise AssertionError(node.kind)
