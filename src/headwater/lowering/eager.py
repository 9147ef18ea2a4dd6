"""`eager`: each row carries the ids of the source records behind it, as native columns.

The rule per operator is Ariadne's: a step with one input row per output row passes the
annotation on, an aggregate collects those of its rows, a join unites those of its pair, a
union aligns, a deduplication keeps the survivor's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headwater.columns import quoted
from headwater.lowering.traced import LEFT, RIGHT, Origins, Traced
from headwater.lowering.tracing import Tracing
from headwater.names import KEY, RECORD

if TYPE_CHECKING:
    from headwater.flow import nodes
    from headwater.lowering.sources import Sources

ORIGIN = "__hw_from_"


def origin(source: str) -> str:
    """The column that holds the ids of a source's records: one id, or an array of them."""
    return ORIGIN + source


class Eager(Tracing):
    """Sets of source ids beside the user's columns.

    With `steps`, provenance is in terms of the rows of these steps, by their keys: Ariadne's
    P(O, I). What lies above them carries no ids. The keys of steps in `beside` are carried as well
    as the ids of records.
    """

    name: ClassVar[str] = "eager"

    def __init__(
        self,
        sources: Sources,
        steps: frozenset[str] = frozenset(),
        beside: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(sources)
        self.steps = steps
        self.beside = beside

    def lower(self, node: nodes.Node) -> Traced:
        if node.step in self._done:
            return self._done[node.step]
        rows = super().lower(node)
        if self.steps and node.kind == "source" and node.step not in self.steps:
            rows = self._done[node.step] = replace(rows, df=self._bare(rows), origins={})
        elif node.step in self.steps and node.kind != "source":
            own = self._bare(rows).withColumn(origin(node.step), F.col(KEY))
            rows = self._done[node.step] = replace(rows, df=own, origins={node.step: False})
        elif node.step in self.beside:
            both = rows.df.withColumn(origin(node.step), F.col(KEY))
            origins = {**rows.origins, node.step: False}
            rows = self._done[node.step] = replace(rows, df=both, origins=origins)
        return rows

    def _bare(self, rows: Traced) -> DataFrame:
        return rows.df.drop(*(c for c in rows.annotations if c.startswith(ORIGIN)))

    def record(self, node: nodes.Source) -> dict[str, Column]:
        return {origin(node.name): F.col(RECORD)}

    def aligned(self, rows: Traced, origins: Origins) -> list[Column]:
        return [_widened(rows, source, many) for source, many in origins.items()]

    def collected(self, rows: Traced) -> tuple[list[Column], dict[str, Column]]:
        lists = [F.collect_list(origin(s)).alias(origin(s)) for s in rows.origins]
        sets = {
            origin(source): F.array_distinct(
                F.flatten(origin(source)) if many else F.col(origin(source))
            )
            for source, many in rows.origins.items()
        }
        return lists, sets

    def carried(self, rows: Traced) -> tuple[str, ...]:
        return tuple(origin(source) for source in rows.origins)

    def paired(
        self, node: nodes.Node, left: Traced, right: Traced, origins: Origins
    ) -> dict[str, Column]:
        return {origin(source): _united(source, left, right, m) for source, m in origins.items()}


def as_array(rows: Traced, source: str) -> Column:
    """A row's ids of one source as an array, null where it has none."""
    column = quoted(origin(source))
    if rows.origins[source]:
        return column
    return F.when(column.isNotNull(), F.array(column)).alias(origin(source))


def _as_set(column: Column, many: bool) -> Column:
    """A row's ids of one source as an array, empty where it has none."""
    if many:
        return F.coalesce(column, F.array().cast("array<bigint>"))
    return F.when(column.isNull(), F.array().cast("array<bigint>")).otherwise(F.array(column))


def _widened(rows: Traced, source: str, many: bool) -> Column:
    """The annotation of one branch of a union in the type that both branches share."""
    if source not in rows.origins:
        none: Column = F.lit(None).cast("array<bigint>" if many else "bigint")
        return none.alias(origin(source))
    own = quoted(origin(source))
    wide = _as_set(own, False) if many and not rows.origins[source] else own
    return wide.alias(origin(source))


def _united(source: str, left: Traced, right: Traced, many: bool) -> Column:
    """The annotation of a joined pair."""
    name = origin(source)
    sides = [
        (quoted(prefix + name), rows.origins[source])
        for prefix, rows in ((LEFT, left), (RIGHT, right))
        if source in rows.origins
    ]
    if len(sides) == 1:
        return sides[0][0]
    assert many
    return F.array_distinct(F.concat(*(_as_set(column, each) for column, each in sides)))
