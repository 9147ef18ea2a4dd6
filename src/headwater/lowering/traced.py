"""Rows that know where they come from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headwater.flow.watermarks import MARK
from headwater.names import ORDER, PREFIX

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

LEFT, RIGHT = "__hw_left_", "__hw_right_"

Origins = dict[str, bool]


@dataclass(frozen=True, slots=True)
class Traced:
    """A frame whose rows know where they come from.

    `origins` has, for each source upstream, whether a row may come from several of its records.
    `unique` says that no two rows have the same key. `orders` are the columns by which the rows of
    a micro-batch stand in the order of their arrival; none where nobody asks, or where they don't.
    """

    df: DataFrame
    origins: Origins
    unique: bool
    orders: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the user's columns."""
        return tuple(c for c in self.df.columns if not c.startswith(PREFIX))

    @property
    def annotations(self) -> tuple[str, ...]:
        """The names of the columns that Headwater added."""
        return tuple(c for c in self.df.columns if c.startswith(PREFIX))

    def with_df(self, df: DataFrame) -> Traced:
        """The same origins over another frame."""
        return replace(self, df=df)

    def without(self, *columns: str) -> Traced:
        """The same rows without some columns."""
        return self.with_df(self.df.drop(*columns))


def appended(rows: Traced, order: Column) -> Traced:
    """The rows with one more column to sort by, where they stand in an order."""
    if not rows.orders:
        return rows
    name = f"{ORDER}{len(rows.orders)}"
    df = rows.df.withColumn(name, order.cast("bigint"))
    return replace(rows, df=df, orders=(*rows.orders, name))


def marked(schema: StructType) -> list[str]:
    """The columns that Spark takes for the event time."""
    return [f.name for f in schema.fields if MARK in (f.metadata or {})]
