"""`intervals`: each row carries, per source, the least and greatest position in its provenance.

Ariadne's covering intervals: of constant size, made with native `min` and `max`, and always a
superset of the provenance. Asked for it, a result's interval is read again from the source and
replayed, which gives the exact set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import Column
from pyspark.sql import functions as F

from headwater.columns import quoted
from headwater.lowering.traced import LEFT, RIGHT, Origins, Traced
from headwater.lowering.tracing import Tracing
from headwater.names import POSITION

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.flow import nodes

AT = "__hw_at_"
LOW, HIGH = "__hw_low_", "__hw_high_"


class Intervals(Tracing):
    """A position per source beside the user's columns, or two where a row has several records."""

    name: ClassVar[str] = "intervals"

    def record(self, node: nodes.Source) -> dict[str, Column]:
        placed = POSITION in self.sources.frame(node).columns
        return {AT + node.name: F.col(POSITION) if placed else F.lit(None).cast("bigint")}

    def aligned(self, rows: Traced, origins: Origins) -> list[Column]:
        nothing = F.lit(None).cast("bigint")
        return [
            (own(rows, end) if _source(end) in rows.origins else nothing).alias(end)
            for end in carried(origins)
        ]

    def collected(self, rows: Traced) -> tuple[list[Column], dict[str, Column]]:
        return [
            (F.min if end.startswith(LOW) else F.max)(own(rows, end)).alias(end)
            for end in ends(rows.origins)
        ], {}

    def paired(
        self, node: nodes.Node, left: Traced, right: Traced, origins: Origins
    ) -> dict[str, Column]:
        def of_pair(end: str) -> Column:
            sides = [
                own(rows, end, prefix)
                for prefix, rows in ((LEFT, left), (RIGHT, right))
                if _source(end) in rows.origins
            ]
            if len(sides) == 1:
                return sides[0]
            # Both pass over a side that has none.
            return (F.least if end.startswith(LOW) else F.greatest)(*sides)

        return {end: of_pair(end) for end in carried(origins)}


def own(rows: Traced, end: str, prefix: str = "") -> Column:
    """One end of a row's interval in a source; that of a single record is its position."""
    source = _source(end)
    return quoted(prefix + (end if rows.origins[source] else AT + source))


def ends(sources: Iterable[str]) -> tuple[str, ...]:
    """The columns that hold the intervals of some sources."""
    return tuple(end + source for source in sources for end in (LOW, HIGH))


def carried(origins: Origins) -> tuple[str, ...]:
    """The columns that rows carry: one for a source of which they have a single record at most."""
    return tuple(
        column
        for source, many in origins.items()
        for column in (ends((source,)) if many else (AT + source,))
    )


def _source(end: str) -> str:
    for prefix in (AT, LOW, HIGH):
        if end.startswith(prefix):
            return end.removeprefix(prefix)
    raise ValueError(end)
