"""Whether the rows of a step stand in an order of arrival."""

from __future__ import annotations

from headwater.flow import nodes
from headwater.flow.kafka import FORMAT as KAFKA
from headwater.flow.sourcing import FILE_FORMATS

_NO_ORDER = (nodes.Aggregate, nodes.Join, nodes.Static)


def why_unordered(node: nodes.Node) -> str | None:
    """Why a step's rows come in no order of their own, or None if they do."""
    if isinstance(node, nodes.Source):
        return None if _has_places(node) else _WITHOUT_PLACES.format(node.name)
    if isinstance(node, _NO_ORDER):
        return f"the rows of {node.kind} step {node.step!r} come in no order"
    if isinstance(node, nodes.Ordered):
        return None
    return next((why for above in node.inputs if (why := why_unordered(above))), None)


_WITHOUT_PLACES = (
    "the records of source {0!r} have no places: neither Parquet files nor integer ids"
)


def _has_places(source: nodes.Source) -> bool:
    in_files = source.df is None and source.format in FILE_FORMATS
    in_topics = source.df is None and source.format == KAFKA
    in_order = in_topics or (in_files and source.format == "parquet")
    return in_order or source.identity.how == "column"
