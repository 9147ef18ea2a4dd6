"""The bounded-pass sort: the same rows, each at the place of the one that pushed it out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headwater.columns import quoted
from headwater.lowering.ordered.arriving import arrived
from headwater.lowering.ordered.hosting import hosted
from headwater.names import GROUP
from headwater.ordered.sorting import BoundedSort

if TYPE_CHECKING:
    from headwater.flow import nodes
    from headwater.lowering.traced import Traced

ON = "__hw_on_"


def b_sort(node: nodes.BSort, rows: Traced) -> Traced:
    """The rows of a bounded-pass sort, with everything that they carry."""
    ready = arrived(node, rows, node.by)
    on = {f"{ON}{i}": expr.column for i, expr in enumerate(node.on)}
    kept = [*rows.columns, *(c for c in rows.annotations if c not in rows.orders), *ready.orders]
    df = ready.df.withColumns(on).select(*map(quoted, (GROUP, *on, *kept)))
    done = hosted(
        df,
        BoundedSort(node.slack, tuple(on), ready.orders),
        sort=ready.sorted_by,
        schema=df.schema,
        keyed=bool(node.by),
    )
    own = [quoted(f.name).alias(f.name, metadata=f.metadata) for f in ready.fields(*kept)]
    return replace(rows, df=done.select(*own), orders=ready.orders)
