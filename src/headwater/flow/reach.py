"""How far a record reaches: the watermark after which no later batch can give a result of it.

Each step has two rules: when it lets go of a row at a given time, and what time its output then
has. Composed along every path from a source to the sinks they give a record's *reach*: once a batch
has run with that watermark, the record is past. Ananke's own bound, the sum of the window sizes
along the longest path, is kept beside it; it is never earlier.

The rules are plain data, so that a store can be asked without the flow.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from headwater.flow.nodes import Aggregate, Join, Merge, Node, Ordered, Source, Union, Watermark
from headwater.flow.terms import Ref
from headwater.flow.watermarks import MARK, input_lag, joins_streams, lag
from headwater.flow.windows import SESSION_MARK, Session, Window
from headwater.times import NO_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql.types import StructType

    Shape = Callable[[Node], StructType]

Times = npt.NDArray[np.int64]

OWN_BATCH = -(1 << 62)
"""The reach of a record that is past as soon as its own batch has run."""
FOREVER = 1 << 62
"""The reach of a record that no watermark makes past."""
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


@dataclass(frozen=True, slots=True)
class Unbounded:
    """The step that keeps a record for as long as the flow runs, and why."""

    step: str
    why: str

    def __str__(self) -> str:
        return f"step {self.step!r}: {self.why}"


@dataclass(frozen=True, slots=True)
class _Spread:
    """What became of some records at a step: the latest time of their rows, and what they await.

    `due` is the least watermark of a batch in which all that the steps above hold of a record has
    been let go.
    """

    latest: Times
    due: Times


@dataclass(frozen=True, slots=True)
class Reach:
    """How far the records of one source reach in a flow."""

    source: str
    rules: tuple[Rule, ...]
    """Of the source and the steps below it, inputs first."""
    sinks: tuple[str, ...]
    ananke: int | None = None
    """Ananke's bound U, with what the slowest sink's watermark is behind; None without bound."""

    @classmethod
    def of(cls, source: Node, sinks: Sequence[Node], shape: Shape) -> Reach:
        """The reach of a source's records, or of a step's rows, by the paths to some sinks.

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
                    below[node.step] = _rule(
                        node, frozenset(below), lost[0] if lost else None, shape
                    )
                    if isinstance(node, Watermark):
                        timeless[node.step] = node
                    elif (other := _other_time(node, frozenset(below), shape)) is not None:
                        timeless[node.step] = other
                    elif lost and not _sets_time(node):
                        timeless[node.step] = lost[0]
        ends = tuple(sink.step for sink in sinks if sink.step in below)
        return cls(source.step, tuple(below.values()), ends, longest_wait(sinks, source))

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Reach:
        """The reach that was written with `to_json`."""
        rules = (
            Rule(**{**rule, "inputs": tuple(rule["inputs"]), "waits": tuple(rule["waits"])})
            for rule in given["rules"]
        )
        return cls(given["source"], tuple(rules), tuple(given["sinks"]), given["ananke"])

    def to_json(self) -> dict[str, Any]:
        """The reach as plain data."""
        return asdict(self)

    @property
    def unbounded(self) -> Unbounded | None:
        """The step that keeps records for as long as the flow runs, if there is one."""
        endless = next((rule for rule in self.rules if rule.kind == "endless"), None)
        return None if endless is None else Unbounded(endless.step, endless.why)

    @property
    def sessions(self) -> dict[str, Rule]:
        """The session steps below the source: how long they hold a record, only their rows say."""
        return {rule.step: rule for rule in self.rules if rule.kind == "session"}

    @property
    def hands_on_at_once(self) -> bool:
        """Whether some path to a sink has no step that holds rows."""
        at_once: set[str] = set()
        for rule in self.rules:
            passes = rule.kind == "pass" and any(step in at_once for step in rule.inputs)
            if rule.kind == "start" or passes:
                at_once.add(rule.step)
        return any(sink in at_once for sink in self.sinks)

    def until(self, times: Times) -> Times:
        """The reach of records at these times (µs), without what sessions hold of them."""
        own = np.full(len(times), OWN_BATCH, np.int64)
        if self.unbounded is not None:
            return np.full(len(times), FOREVER, np.int64)
        due = self._walk(self.source, _Spread(np.where(times == NO_TIME, 0, times), own))
        # A row without a time enters no window and waits for no partner.
        return np.where(times == NO_TIME, OWN_BATCH, due)

    def alive_since(self, watermark: int) -> int | None:
        """The earliest time (µs) at which a record may still reach a result; None without bound.

        A record before it that has reached nothing never will.
        """
        if self.unbounded is not None or self.sessions or self.ananke is None:
            return None
        low, high = watermark - self.ananke, watermark
        if any(rule.slide > rule.size for rule in self.rules):
            # Between windows that leave gaps records are past sooner than some before them.
            return low
        while low < high:
            middle = (low + high) // 2
            if self.until(np.array([middle]))[0] > watermark:
                high = middle
            else:
                low = middle + 1
        return low

    def after(self, session: str, ends: Times) -> Times:
        """The reach of records in sessions of a step that end at these times (µs)."""
        if self.unbounded is not None:
            return np.full(len(ends), FOREVER, np.int64)
        rule = self.sessions[session]
        return self._walk(session, _Spread(ends - 1, ends + rule.lag))

    def as_ananke(self, times: Times) -> Times:
        """Ananke's rule: a record is past once W - U is after its time, W being the sink's."""
        if self.ananke is None:
            return np.full(len(times), FOREVER, np.int64)
        return np.where(times == NO_TIME, OWN_BATCH, times + self.ananke + 1)

    def _walk(self, start: str, given: _Spread) -> Times:
        """The reach by all paths from a step to the sinks, up to sessions on the way."""
        spreads = {start: given}
        due = given.due
        for rule in self.rules:
            if rule.step == start or (found := _through(rule, spreads)) is None:
                continue
            if rule.kind == "session":
                # It goes on from what its rows say; what the steps above hold is not with it yet.
                due = np.maximum(due, found.due)
            else:
                spreads[rule.step] = found
        for sink in self.sinks:
            if sink in spreads:
                due = np.maximum(due, spreads[sink].due)
        return due


def _through(rule: Rule, spreads: Mapping[str, _Spread]) -> _Spread | None:
    """What becomes of rows in a step; None when none of its inputs has any."""
    given = [spreads[step] for step in rule.inputs if step in spreads]
    if not given:
        return None
    if rule.kind == "pair":
        sides = zip(rule.inputs, rule.waits, strict=True)
        return _merged([_paired(rule, spreads[s], wait) for s, wait in sides if s in spreads])
    rows = _merged(given)
    match rule.kind:
        case "window":
            return _windowed(rule, rows)
        case "group":
            return _Spread(rows.latest, np.maximum(rows.due, rows.latest + rule.size + rule.lag))
    return rows


def _merged(spreads: Sequence[_Spread]) -> _Spread:
    first, *rest = spreads
    for one in rest:
        latest = np.maximum(first.latest, one.latest)
        first = _Spread(latest, np.maximum(first.due, one.due))
    return first


def _windowed(rule: Rule, rows: _Spread) -> _Spread:
    ends = rows.latest - (rows.latest - rule.offset) % rule.slide + rule.size
    # Between windows that leave gaps a row is in none.
    inside = ends > rows.latest
    due = np.where(inside, np.maximum(rows.due, ends + rule.lag), rows.due)
    return _Spread(np.where(inside, ends - 1, rows.latest), due)


def _paired(rule: Rule, rows: _Spread, wait: int) -> _Spread:
    # With a time or a window as key the state goes by it; else a row waits so long for partners.
    due = np.maximum(rows.due, rows.latest + (wait if any(rule.waits) else rule.size) + rule.lag)
    return _Spread(rows.latest + max(0, wait), due)


# --- from a flow's steps ----------------------------------------------------------------------


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
