"""What the shape of a flow says about replaying it."""

from __future__ import annotations

from headwater.flow import nodes
from headwater.flow.watermarks import joins_streams
from headwater.replay.columns import source_column


def is_monotone(sink: nodes.Sink) -> bool:
    """Whether more source records than a result's own can't change how it is made.

    A group that is cut off by the end of a slice, or a row that lost its partner there, becomes
    another row than it was. That does no harm where the asked result's key leaves it out, but an
    aggregate further down would count it in.
    """
    return not any(
        isinstance(below, nodes.Aggregate)
        and any(
            isinstance(above, nodes.Aggregate)
            or (
                isinstance(above, nodes.Join) and above.how == "left_outer" and joins_streams(above)
            )
            for above in below.input.upstream()
        )
        for below in sink.upstream()
    )


def deciding(sink: nodes.Sink) -> list[nodes.Deduplicate]:
    """The deduplications whose survivor the asked result's own key does not tell.

    An aggregate's key says nothing of the rows in it, nor does an unmatched row of those that it
    did not find.
    """
    found: dict[str, nodes.Deduplicate] = {}
    for below in sink.upstream():
        blind: tuple[nodes.Node, ...] = ()
        if isinstance(below, nodes.Aggregate):
            blind = below.inputs
        elif isinstance(below, nodes.Join) and below.how == "left_outer":
            blind = below.inputs[1:]
        for side in blind:
            for node in side.upstream():
                if isinstance(node, nodes.Deduplicate):
                    found[node.step] = node
    return list(found.values())


def holds_id(node: nodes.Deduplicate, columns: tuple[str, ...]) -> bool:
    """Whether rows that a deduplication takes for equal are always of one source record."""
    for column in node.columns or columns:
        found = source_column(node.input, column)
        if found is not None and found[0].identity.columns == (found[1],):
            return True
    return False
