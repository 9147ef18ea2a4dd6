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
from headwater.lowering.sources import POSITION
from headwater.lowering.tracing import LEFT, RIGHT, Origins, Traced, Tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from headwater.flow import nodes

LOW, HIGH = "__hw_low_", "__hw_high_"


class Intervals(Tracing):
    """Two positions per source beside the user's columns."""

    name: ClassVar[str] = "intervals"

    def record(self, node: nodes.Source) -> dict[str, Column]:
        return dict.fromkeys(ends((node.name,)), F.col(POSITION))

    def aligned(self, rows: Traced, origins: Origins) -> list[Column]:
        there = set(ends(rows.origins))
        return [
            (quoted(end) if end in there else F.lit(None).cast("bigint")).alias(end)
            for end in ends(origins)
        ]

    def collected(self, rows: Traced) -> tuple[list[Column], dict[str, Column]]:
        widest = [_widest(end)(end).alias(end) for end in ends(rows.origins)]
        return widest, {}

    def paired(
        self, node: nodes.Join, left: Traced, right: Traced, origins: Origins
    ) -> dict[str, Column]:
        def of_pair(end: str) -> Column:
            sides = [
                quoted(prefix + end)
                for prefix, rows in ((LEFT, left), (RIGHT, right))
                if end in ends(rows.origins)
            ]
            if len(sides) == 1:
                return sides[0]
            # Both pass over a side that has none.
            return (F.least if end.startswith(LOW) else F.greatest)(*sides)

        return {end: of_pair(end) for end in ends(origins)}


def ends(sources: Iterable[str]) -> tuple[str, ...]:
    """The columns that hold the intervals of some sources."""
    return tuple(end + source for source in sources for end in (LOW, HIGH))


def _widest(end: str) -> Callable[[str], Column]:
    return F.min if end.startswith(LOW) else F.max
