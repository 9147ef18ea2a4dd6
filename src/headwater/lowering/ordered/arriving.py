"""Rows made ready for an ordered step: the hash of their keys, and what to sort them by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import DateType, IntegralType, TimestampType

from headwater.columns import identity_hash, quoted
from headwater.errors import UnsupportedError
from headwater.names import GROUP, KEY, ORDER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

    from headwater.flow import nodes
    from headwater.flow.expressions import Expr
    from headwater.lowering.traced import Traced

BY = "__hw_by_"


@dataclass(frozen=True, slots=True)
class Arrived:
    """Rows with the hash of their keys, the keys' values, and what to sort them by."""

    df: DataFrame
    keys: tuple[str, ...]
    orders: tuple[str, ...]

    @property
    def sorted_by(self) -> tuple[str, ...]:
        """Every column to sort by: no two rows are tied by chance."""
        return (*self.orders, KEY)

    def fields(self, *names: str) -> list[StructField]:
        """The fields of some columns."""
        return [self.df.schema[name] for name in names]


def arrived(
    node: nodes.Ordered,
    rows: Traced,
    by: Sequence[Expr],
    order_by: Sequence[Expr] | None = None,
) -> Arrived:
    """The rows of a step's input, grouped by some keys, in the step's order or another."""
    given = node.order_by if order_by is None else order_by
    if not given and not rows.orders:
        raise UnsupportedError(
            f"{node.kind} step {node.step!r} at {node.site}: its rows come in no order; "
            "give order_by="
        )
    keys = {f"{BY}{i}": expr.column for i, expr in enumerate(by)}
    sorts = _sorts(given, rows)
    df = rows.df.withColumns({**keys, **sorts})
    fields = [df.schema[name] for name in keys]
    group = identity_hash(fields) if fields else F.lit(0).cast("bigint")
    return Arrived(df.withColumn(GROUP, group), tuple(keys), tuple(sorts))


def _sorts(order_by: Sequence[Expr], rows: Traced) -> dict[str, Column]:
    """What to sort by: the given expressions, then the order in which the rows stand already."""
    kinds = rows.df.select(*(e.column for e in order_by)).schema.fields if order_by else []
    given = [_sortable(e.column, f) for e, f in zip(order_by, kinds, strict=True)]
    columns = [*given, *(quoted(o) for o in rows.orders)]
    return {f"{ORDER}{i}": column for i, column in enumerate(columns)}


def _sortable(column: Column, field: StructField) -> Column:
    """Whole numbers, times and dates as one type, so that the branches of a union agree on it."""
    match field.dataType:
        case TimestampType():
            return F.unix_micros(column)
        case IntegralType():
            return column.cast("bigint")
        case DateType():
            return F.unix_date(column).cast("bigint")
    return column
