"""Which rule each step has for the rows that come to it: when it lets go of them.

`flow/reach.py` composes these rules. They are plain data, so that a store can be asked without
the flow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from headwater.flow.nodes import Aggregate, Join, Merge, Node, Ordered, Source, Union, Watermark
from headwater.flow.terms import Ref
from headwater.flow.watermarks import MARK, input_lag, joins_streams, lag
from headwater.flow.windows import SESSION_MARK, Session, Window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql.types import StructType

    Shape = Callable[[Node], StructType]

_MILLISECOND = 1000


@dataclass(frozen=True, slots=True)
class Rule:
    """What a step does with rows at a time; all lengths in microseconds.

    `pass`: hands them on at once. `window`: holds them until the end of each window that they are
    in. `group`: until their time is past, `pair`: for `waits` of the side that they come by; both
    for `size` more where windows end between milliseconds.
    `session`: as long as more rows of the session come. `endless`: as long as the flow runs.
    """

    step: str
    kind: Literal["start", "pass", "window", "group", "pair", "session", "endless"]
    inputs: tuple[str, ...] = ()
    lag: int = 0
    """How far the step's watermark is behind the batch's."""
    size: int = 0
    slide: int = 0
    offset: int = 0
    waits: tuple[int, ...] = ()
    why: str = ""


def rules_below(source: Node, sinks: Sequence[Node], shape: Shape) -> dict[str, Rule]:
    """The rules of a source, or a step, and of the steps between it and some sinks, inputs first.

    `shape` gives the columns of a step: Spark marks there what it takes for the event time.
    """
    below: dict[str, Rule] = {}
    timeless: dict[str, Node] = {}
    for sink in sinks:
        for node in sink.upstream():
            if node.step in below:
                continue
            if node.step == source.step:
                below[node.step] = _start(source)
                if (lost_at := _without_time(source)) is not None:
                    timeless[node.step] = lost_at
            elif any(above.step in below for above in node.inputs):
                lost = [timeless[n.step] for n in node.inputs if n.step in timeless]
                below[node.step] = _rule(node, frozenset(below), lost[0] if lost else None, shape)
                if isinstance(node, Watermark):
                    timeless[node.step] = node
                elif (other := _other_time(node, frozenset(below), shape)) is not None:
                    timeless[node.step] = other
                elif lost and not _sets_time(node):
                    timeless[node.step] = lost[0]
    return below


def _without_time(start: Node) -> Node | None:
    """The step that keeps the times of rows from being told, if there is one above them."""
    for node in start.upstream():
        if isinstance(node, Source) and node.streaming and not (node.event_time and node.watermark):
            return node
        if isinstance(node, Watermark):
            return node
    return None


def _start(source: Node) -> Rule:
    if isinstance(source, Source) and not source.streaming:
        why = "its records do not stream, and join what comes"
        return Rule(source.step, "endless", why=why)
    return Rule(source.step, "start")


def _rule(node: Node, below: frozenset[str], timeless: Node | None, shape: Shape) -> Rule:
    """The rule of a step that rows of the source come to."""
    inputs = tuple(above.step for above in node.inputs)

    def endless(why: str) -> Rule:
        at = f" (at {node.site})" if node.site else ""
        return Rule(node.step, "endless", inputs, why=f"{why}{at}")

    if isinstance(node, Ordered):
        return endless(f"{node.kind} waits for rows to arrive, however long that takes")
    if isinstance(node, Join) and not joins_streams(node):
        if inputs[0] in below:
            return Rule(node.step, "pass", inputs)
        return endless("the static side of a join is used as long as rows come")
    if not isinstance(node, Aggregate | Join):
        return Rule(node.step, "pass", inputs)
    behind = input_lag(node)
    if behind is None or isinstance(timeless, Source):
        named = f" of source {timeless.step!r}" if timeless is not None else ""
        return endless(
            f"the records{named} have no event time; give event_time= and watermark= there"
        )
    if timeless is not None:
        return endless(
            f"its rows go by the time that step {timeless.step!r} sets, not by the records' own"
        )
    return _stateful(node, inputs, behind * _MILLISECOND, endless, shape)


def _stateful(
    node: Aggregate | Join,
    inputs: tuple[str, ...],
    behind: int,
    endless: Callable[[str], Rule],
    shape: Shape,
) -> Rule:
    if isinstance(node, Join):
        if node.range is None:
            return endless("nothing bounds how far apart the times of a pair are")
        waits = tuple(wait * _MILLISECOND for wait in node.waits)
        return Rule(node.step, "pair", inputs, behind, _moment_more(node), waits=waits)
    match node.window:
        case Window(size=size, slide=slide, offset=offset):
            return Rule(node.step, "window", inputs, behind, size, slide, offset)
        case Session(gap=None):
            return endless("the gap of its sessions is computed")
        case Session(time=time) if not isinstance(time, Ref):
            return endless("its sessions are not over an event-time column")
        case Session(gap=int(gap)):
            return Rule(node.step, "session", inputs, behind, size=gap)
    keys = shape(node).fields[: len(node.keys)]
    if any(SESSION_MARK in (field.metadata or {}) for field in keys):
        return endless("it groups by the sessions of an earlier step")
    return Rule(node.step, "group", inputs, behind, _moment_more(node))


def _moment_more(node: Node) -> int:
    """What a step that goes by a window's end waits beyond the window's last moment (µs).

    Watermarks are whole milliseconds: the first that is not before a window's last moment is not
    before its end either, where windows end on whole milliseconds.
    """
    whole = all(
        length % _MILLISECOND == 0
        for above in node.upstream()
        if isinstance(above, Aggregate) and isinstance(above.window, Window)
        for length in (above.window.size, above.window.slide, above.window.offset)
    )
    return 0 if whole else 1


def _other_time(node: Node, below: frozenset[str], shape: Shape) -> Node | None:
    """The branch of a union whose rows go by a time of their own, not by their event time."""
    if not isinstance(node, Union | Merge):
        return None
    fields = shape(node).fields
    times = [i for i, field in enumerate(fields) if MARK in (field.metadata or {})]
    for branch in node.inputs:
        if branch.step not in below:
            continue
        own = shape(branch).fields
        by_name = {field.name: field for field in own}
        for at in times:
            named = isinstance(node, Merge) or node.by_name
            field = by_name.get(fields[at].name) if named else own[at]
            if field is not None and MARK not in (field.metadata or {}):
                return branch
    return None


def _sets_time(node: Node) -> bool:
    return isinstance(node, Aggregate) and node.window is not None


def longest_wait(sinks: Iterable[Node], source: Node) -> int | None:
    """Microseconds past a record's time after which no sink can use it, or None if unbounded.

    The sum of window sizes and join ranges along the longest path, Ananke's U, and what the sink's
    watermark is behind the batch's. Sessions grow with their rows, a static side is used forever,
    and what waits for rows to arrive waits as long as none do: they have no bound.
    """
    if isinstance(source, Source) and (not source.streaming or source.event_time is None):
        return None
    memo: dict[str, int | None] = {}

    def wait(node: Node) -> int | None:
        """The bound from the source to this node; -1 when the source is not above it."""
        if node.step == source.step:
            return 0
        if node.step not in memo:
            above = [wait(n) for n in node.inputs]
            longest = (
                None if None in above else max((a for a in above if a is not None), default=-1)
            )
            own = _own(node)
            if longest is not None and longest >= 0:
                longest = None if own is None else longest + own
            memo[node.step] = longest
        return memo[node.step]

    longest = -1
    for sink in sinks:
        found = wait(sink)
        if found is None:
            return None
        if found >= 0:
            longest = max(longest, found + (lag(sink) or 0) * _MILLISECOND)
    return longest


def _own(node: Node) -> int | None:
    """What one step adds; None when it has no bound."""
    match node:
        case Aggregate(window=Window(size=size)):
            return size
        case Aggregate(window=Session()):
            return None
        case Join(range=span):
            return span
        case Ordered():
            return None
    return 0
