"""The columns of steps that Spark lacks, as Spark would have them.

While a flow is written, each step is checked with Spark at once; for these only the shape can be.
The frames made here are analysed and never run: a flow with such steps runs by a tracing lowering,
without capture too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from headwater.columns import quoted
from headwater.flow import nodes
from headwater.flow.terms import Ref, unaliased

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame


def windows_shape(node: nodes.CountWindow | nodes.ValueWindow, df: DataFrame) -> DataFrame:
    """The columns of windows: the keys, then the aggregates.

    The greatest event time is the event time of what is made from it.
    """
    if isinstance(node, nodes.ValueWindow):
        df.select(node.on.column)
    grouped = df.groupBy(*(e.column for e in node.by)).agg(*(c.column.column for c in node.columns))
    fields = grouped.schema.fields
    marks: list[dict[str, object]] = [f.metadata for f in fields]
    for i, each in enumerate(node.columns, start=len(node.by)):
        if each.function == "max" and each.argument is not None:
            term = unaliased(each.argument.term)
            if isinstance(term, Ref):
                marks[i] = df.select(each.argument.column).schema.fields[0].metadata
    return grouped.select(
        *(quoted(f.name).alias(f.name, metadata=m) for f, m in zip(fields, marks, strict=True))
    )


def match_shape(node: nodes.Match, df: DataFrame) -> DataFrame:
    """The columns of matches: the keys, then the measures."""
    native = node.pattern.native
    df.select(*(F.expr(sql) for sql in native.values()))
    made = [F.expr(m.typed_by(native)).alias(m.name) for m in node.pattern.columns]
    grouped = df.groupBy(*(e.column for e in node.by)).agg(*made)
    fields = grouped.schema.fields
    marks: list[dict[str, object]] = [f.metadata for f in fields]
    for i, measure in enumerate(node.pattern.columns, start=len(node.by)):
        if (measure.function, measure.variable) == ("max", None) and measure.column is not None:
            marks[i] = df.select(F.expr(native[measure.column])).schema.fields[0].metadata
    return grouped.select(
        *(quoted(f.name).alias(f.name, metadata=m) for f, m in zip(fields, marks, strict=True))
    )


def join_shape(node: nodes.OrderedJoin, left: DataFrame, right: DataFrame) -> DataFrame:
    """The columns of pairs."""
    for name in node.on:
        left.select(quoted(name)), right.select(quoted(name))
    if isinstance(node, nodes.JoinValue):
        left.select(node.left_on.column), right.select(node.right_on.column)
    columns = joined_columns(node, left.columns, right.columns)
    renamed = right.select(*(quoted(c).alias(f"__hw_right_{c}") for c in right.columns))

    def own(side: int, name: str) -> Column:
        if side == timed_side(node):
            frame = right if side else left
            metadata = frame.schema[name].metadata
        else:
            metadata = {}
        return quoted(f"__hw_right_{name}" if side else name).alias(name, metadata=metadata)

    return left.crossJoin(renamed).select(*(own(side, name) for side, name in columns))


def sort_shape(node: nodes.BSort, df: DataFrame) -> DataFrame:
    """The rows as they are, where what they are sorted by is there."""
    df.select(*(e.column for e in (*node.on, *node.by, *node.order_by)))
    return df.filter(F.lit(True))


def joined_columns(
    node: nodes.OrderedJoin, left: Sequence[str], right: Sequence[str]
) -> list[tuple[int, str]]:
    """The columns of a pair and their sides: those of `on`, then the left's, then the right's."""
    rest = [(0, c) for c in left if c not in node.on]
    return [*((0, c) for c in node.on), *rest, *((1, c) for c in right if c not in node.on)]


def timed_side(node: nodes.OrderedJoin) -> int:
    """The side whose event time is the pair's for Spark."""
    return 1 if isinstance(node, nodes.JoinLatest) and node.clock == "right" else 0
