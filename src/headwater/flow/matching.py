"""`match`: its texts checked, its node made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from headwater.errors import FlowError
from headwater.flow import nodes
from headwater.flow.callsite import callsite
from headwater.flow.ordering import keys, order
from headwater.flow.windows import microseconds
from headwater.ordered.patterns import Pattern

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.flow.frame import Frame


def match(
    frame: Frame,
    pattern: str,
    *,
    within: str | None,
    by: Any,
    define: Mapping[str, str],
    measures: Mapping[str, str],
    after_match: str,
    select: Literal["strict", "next"],
    order_by: Any,
) -> Frame:
    """Sequences of rows that match a pattern."""
    if not isinstance(pattern, str):
        raise FlowError(f"match takes a pattern such as 'A B+', not {type(pattern).__name__}")
    if not measures:
        raise FlowError("match needs measures=, what a match says: {'n': 'count(*)'} for instance")
    if within is not None and (untimed := _without_times(frame)) is not None:
        raise FlowError(
            f"match at {callsite()}: within= needs the rows' times; "
            f"source {untimed!r} has no event_time="
        )
    for name, texts in (("define", define), ("measures", measures)):
        for key, text in texts.items():
            if not isinstance(text, str):
                raise FlowError(f"match: {name} of {key!r} is SQL text, not {type(text).__name__}")
    looked_for = Pattern(
        pattern,
        tuple(define.items()),
        tuple(measures.items()),
        None if within is None else microseconds(within),
        after_match,
        select,
    )
    columns = keys(frame, list(by) if isinstance(by, list | tuple) else [by], "match")
    names = [*(e.name for e in columns), *measures]
    for column in names:
        if names.count(column) > 1:
            raise FlowError(f"match: two columns are called {column!r}; rename one")
    orders = order(frame, order_by, "match")
    return frame._add(nodes.Match, pattern=looked_for, by=columns, order_by=orders)


def _without_times(frame: Frame) -> str | None:
    """A source above a frame whose records have no event time."""
    for node in frame._node.upstream():
        if isinstance(node, nodes.Source) and node.event_time is None:
            return node.name
    return None
