"""`ancestors`: rows carry their key and nothing else.

SAF's idea: a result's own key (its group and window, its pair, its record) says which records it
can come from. The functions from keys back to records are in `headwater.replay.ancestors`; at run
time nothing is collected, so aggregates keep nothing for provenance in their state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from headwater.lowering.tracing import Tracing

if TYPE_CHECKING:
    from pyspark.sql import Column

    from headwater.flow import nodes
    from headwater.lowering.traced import Origins, Traced


class Ancestors(Tracing):
    """A key beside the user's columns."""

    name: ClassVar[str] = "ancestors"

    def record(self, node: nodes.Source) -> dict[str, Column]:
        return {}

    def aligned(self, rows: Traced, origins: Origins) -> list[Column]:
        return []

    def collected(self, rows: Traced) -> tuple[list[Column], dict[str, Column]]:
        return [], {}

    def paired(
        self, node: nodes.Node, left: Traced, right: Traced, origins: Origins
    ) -> dict[str, Column]:
        return {}
