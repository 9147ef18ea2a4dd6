"""The fate of a record in one line."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import TYPE_CHECKING

from headwater.flow import nodes
from headwater.flow.windows import Session
from headwater.replay import fates

if TYPE_CHECKING:
    from datetime import datetime

    from headwater.replay.fates import Fate

_MILLISECOND = timedelta(milliseconds=1)


def explanation(node: nodes.Node, fate: Fate) -> str:
    """What became of a record at a step, in one readable line."""
    match fate.kind:
        case fates.REACHED:
            return "it is part of a result" if fate.result is None else f"result {fate.result}"
        case fates.LATE:
            return f"{_late(node, fate)}; the watermark was at {_text(fate.watermark)}"
        case fates.FILTERED:
            return f"{node.step} removed it: not {node.describe()}"
        case fates.NOTHING:
            return f"{node.step} made no row of it: {_nothing(node)}"
        case fates.OPEN:
            return _open(node, fate)
        case fates.UNMATCHED:
            return f"{node.step} found no partner{_partners(node, fate)}: {node.describe()}"
        case fates.DUPLICATE:
            return f"{node.step} kept {_kept(fate)} in its place: equal in {node.describe()}"
        case fates.PASSED_OVER:
            return f"it was in a group of {node.step} whose result comes from other rows"
        case fates.UNREAD:
            return f"it is in {node.step}, but no committed batch has read it"
    raise AssertionError(fate.kind)


def _late(node: nodes.Node, fate: Fate) -> str:
    if isinstance(node, nodes.Aggregate):
        if isinstance(node.window, Session):
            return f"late for {node.step}: its session would have ended at {_text(fate.closes_at)}"
        if node.window is not None:
            return f"late for {node.step}: the window until {_text(fate.closes_at)} had closed"
    return f"late for {node.step}: its time is {_text(fate.closes_at)}"


def _nothing(node: nodes.Node) -> str:
    match node:
        case nodes.Explode():
            return "the array is empty or null"
        case nodes.FlatMap(function=function) | nodes.GroupFunction(function=function):
            return f"{nodes.name_of(function)} gave none"
    return "it has no time, and so is in no window"


def _open(node: nodes.Node, fate: Fate) -> str:
    now = "there is none yet" if fate.watermark is None else f"it is at {_text(fate.watermark)}"
    if isinstance(node, nodes.Join):
        if fate.closes_at is None:
            return f"{node.step} has found no partner so far; more rows may come"
        return f"{node.step} waits for a partner{_partners(node, fate)}; the watermark: {now}"
    if fate.closes_at is None:
        return f"in a group of {node.step} that has no time, and so never closes"
    what = "group" if getattr(node, "window", None) is None else "window"
    return (
        f"in a {what} of {node.step} that closes at {_text(fate.closes_at)}; the watermark: {now}"
    )


def _partners(node: nodes.Node, fate: Fate) -> str:
    """The range of times in which partners are sought, where the join has one."""
    if not isinstance(node, nodes.Join) or fate.closes_at is None or fate.side is None:
        return ""
    if not any(node.waits):
        return f" at {_text(fate.closes_at)}"
    # Spark lets a row go once the watermark is a millisecond past its last partner.
    until = fate.closes_at - _MILLISECOND
    since = fate.closes_at - timedelta(milliseconds=sum(node.waits)) + _MILLISECOND
    return f" from {_text(since)} to {_text(until)}"


def _kept(fate: Fate) -> str:
    return fate.other or "another row"


def _text(time: datetime | None) -> str:
    return (
        "no time" if time is None else time.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ")
    )
