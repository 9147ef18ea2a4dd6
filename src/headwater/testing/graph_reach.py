"""How far records reach, found without the rules of the live graph: by going every way to a sink.

The interpreter's own steps say which windows hold a time, how long a join waits, how far its
watermark is behind and which sessions are open. A way from a source to a sink is walked with every
time that the rows of a record may have there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

from headwater.flow import nodes
from headwater.flow.terms import Ref
from headwater.flow.windows import Session, Window
from headwater.testing.evaluate import EPOCH
from headwater.testing.interpreter import Input, Result, _Builder, first, record_id
from headwater.testing.joins import StaticJoin, StreamJoin
from headwater.testing.operators import Batch, Counters, Operator, Source, Union, Watermark
from headwater.testing.rows import MICROSECOND, Row, united
from headwater.testing.stateful import Aggregate, Sessions, windows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from headwater.testing.operators import Choose
    from headwater.testing.rows import Ids

AT_ONCE = -(1 << 62)
"""The reach of what is past with the batch that brings it."""
UNSAID = 1 << 61
"""No rule says when the step lets go; it may keep a record until the flow is finished."""
NEVER = 1 << 62
"""The step keeps a record until the flow is finished."""

Expiry = Literal["tight", "ananke"]
Step = tuple[Operator, int]
"""A step, and by which of its inputs the rows come."""
Way = tuple[Step, ...]
_LATE = 1 << 44
"""Some watermark (ms) far from 0, to see what steps make of it."""


def micros(time: datetime) -> int:
    """A moment in microseconds since 1970."""
    return (time - EPOCH) // MICROSECOND


class _Tap(Operator):
    """Passes on the rows of a session step, and shows the last batch's."""

    def __init__(self, inner: Sessions) -> None:
        super().__init__(inner.node, (inner,))
        self.inner = inner
        self.schema = inner.schema
        self.given: list[Row] = []

    def run(self, batch: Batch) -> list[Row]:
        self.given = self.inner.run(batch)
        return self.given

    def closed(self) -> Iterator[tuple[int, Ids]]:
        """The ends of the sessions that the last batch gave out, each with its records."""
        for row in self.given:
            yield micros(row.values[self.inner.marked].get("end")), row.ids


class _TappedBuilder(_Builder):
    """Builds a sink's operators with a tap behind each session step."""

    def build(self, node: nodes.Node, place: str = "") -> Operator:
        made = super().build(node, place)
        if isinstance(made, Sessions):
            return _Tap(made)
        if isinstance(node, nodes.GroupFunction) and isinstance(made.inputs[0], Sessions):
            made.inputs = (_Tap(made.inputs[0]),)
        return made


class Stepped:
    """One sink of a flow, run batch by batch, so that what its steps hold can be looked at."""

    def __init__(self, sink: nodes.Sink, choose: Choose = first) -> None:
        self.sink = sink
        ordered = any(isinstance(node, nodes.Ordered) for node in sink.upstream())
        self.top = _TappedBuilder(choose, record_id, Counters(), ordered).build(sink.input)
        self._shown = self.top.schema.visible()
        self.top.require(set(self._shown))
        self.operators = list(_operators(self.top))

    def run(self, batch: Batch) -> list[Result]:
        """The sink's results in a batch."""
        return [
            Result(batch.number, tuple(row.values[i] for i in self._shown), row.time, row.ids)
            for row in self.top.run(batch)
        ]

    def held(self) -> Iterator[tuple[str, Ids]]:
        """What the steps hold between batches: the step's name and the records of a row."""
        for step in self.operators:
            for row in _held(step):
                yield step.node.step, row.ids


def batches(given: Input) -> Iterator[Batch]:
    """A run's batches, as operators take them."""
    previous = 0
    for number, (rows, watermark) in enumerate(zip(given.batches, given.watermarks, strict=True)):
        places = given.places[number] if given.places is not None else {}
        yield Batch(number, {**given.static, **rows}, watermark, previous, places)
        previous = watermark


def _operators(top: Operator) -> Iterator[Operator]:
    for above in top.inputs:
        yield from _operators(above)
    yield top


def _held(step: Operator) -> Iterator[Row]:
    match step:
        case Aggregate(groups=groups):
            for rows in groups.values():
                yield from rows
        case Sessions(open=open_):
            for sessions in open_.values():
                for session in sessions:
                    yield from session.rows
        case StreamJoin(waiting=waiting):
            for side in waiting.values():
                # A row without a time is never dropped, and never meets a partner.
                yield from (one.row for one in side if one.row.time is not None)


@dataclass(slots=True)
class _InSessions:
    """What one session step did with records so far."""

    tap: _Tap
    onward: Way
    open: set[tuple[str, int]] = field(default_factory=set)
    until: dict[tuple[str, int], int] = field(default_factory=dict)
    """How far records of sessions that were given out reach behind the step."""


class Reaches:
    """How far the records of all sources reach by the ways to some sinks, as batches go by."""

    def __init__(self, sinks: Sequence[Stepped], expiry: Expiry) -> None:
        self._expiry = expiry
        self._ways: dict[str, list[tuple[Source, Way]]] = {}
        self._sessions: dict[int, _InSessions] = {}
        self._known: dict[tuple[str, datetime | None], int] = {}
        for sink in sinks:
            for leaf, way in _ways(sink.top):
                self._ways.setdefault(leaf.node.name, []).append((leaf, way))
                for at, (step, _) in enumerate(way):
                    if isinstance(step, _Tap):
                        self._sessions[id(step)] = _InSessions(step, way[at + 1 :])

    def advance(self) -> None:
        """Take note of what the session steps did in a batch that all sinks have run."""
        for seen in self._sessions.values():
            seen.open = set(united(_held(seen.tap.inner)))
            for end, ids in seen.tap.closed():
                lag = _lag(seen.tap.inner)
                reach = _walk(seen.onward, {end - 1}, end + lag)
                for record in ids:
                    seen.until[record] = max(reach, seen.until.get(record, AT_ONCE))

    def of(self, record: tuple[str, int], time: datetime | None) -> int:
        """The batch watermark (µs) from which on a record is past, as things stand."""
        until = self._static(record[0], time)
        if self._expiry == "ananke":
            return until
        for seen in self._sessions.values():
            if record in seen.open:
                # Not yet, whatever the watermark; but not for good.
                return UNSAID
            until = max(until, seen.until.get(record, AT_ONCE))
        return until

    def keeps(self, source: str) -> bool:
        """Whether some step keeps a source's records for as long as the flow runs."""
        return any(_walk(way, set(), AT_ONCE, leaf) == NEVER for leaf, way in self._ways[source])

    def _static(self, source: str, time: datetime | None) -> int:
        known = (source, time)
        if known not in self._known:
            ways = self._ways.get(source, ())
            each = (self._by(leaf, way, time) for leaf, way in ways)
            self._known[known] = max(each, default=AT_ONCE)
        return self._known[known]

    def _by(self, leaf: Source, way: Way, time: datetime | None) -> int:
        times = set() if time is None else {micros(time)}
        until = _walk(way, times, AT_ONCE, leaf)
        if self._expiry == "tight" or until >= UNSAID:
            return until
        if time is None:
            return AT_ONCE
        # Past once t < W - U, where W is the sink's watermark.
        widths = [_width(step) for step, _ in way]
        top = way[-1][0] if way else leaf
        if None in widths:
            return UNSAID
        passed = top.passes_on(_LATE)
        behind = 0 if passed is None else (_LATE - passed) * 1000
        return micros(time) + sum(w for w in widths if w is not None) + behind + 1


def _ways(step: Operator) -> Iterator[tuple[Source, Way]]:
    """Every way from a source down to a step."""
    if isinstance(step, Source):
        yield step, ()
    for side, above in enumerate(step.inputs):
        for leaf, way in _ways(above):
            yield leaf, (*way, (step, side))


def _walk(way: Way, times: set[int], until: int, leaf: Source | None = None) -> int:
    """The reach of a record whose rows are at these times, by one way, up to a session step.

    `until` is when everything before has let go of it.
    """
    dated = True
    if leaf is not None:
        if not leaf.node.streaming:
            return NEVER
        dated = bool(leaf.node.event_time and leaf.node.watermark)
    for at, (step, side) in enumerate(way):
        if isinstance(step.node, nodes.Ordered):
            return NEVER
        match step:
            case StaticJoin():
                if side == 1:
                    return NEVER
            case Watermark():
                dated = False
            case Union() if not _keeps_time(step, side):
                dated = False
            case Sessions():
                rest = _walk(way[at + 1 :], set(), AT_ONCE)
                if rest >= UNSAID or not dated or not _is_plain(step):
                    return max(rest, UNSAID)
                return until
            case Aggregate():
                if not dated:
                    return max(_walk(way[at + 1 :], set(), AT_ONCE), UNSAID)
                times, until = _grouped(step, times, until)
            case StreamJoin():
                if not dated:
                    return max(_walk(way[at + 1 :], set(), AT_ONCE), UNSAID)
                times, until = _paired(step, side, times, until)
    return until


def _keeps_time(step: Union, side: int) -> bool:
    """Whether the event time of a union is that of an input: its mark is the first input's."""
    theirs = step.inputs[side].schema.columns
    marked = (
        step.places[side][at] for at, column in enumerate(step.schema) if column.mark is not None
    )
    return all(place is not None and theirs[place].mark is not None for place in marked)


def _is_plain(step: Sessions) -> bool:
    """Whether a step makes sessions of one gap over an event time."""
    window = step.node.window
    return isinstance(window, Session) and window.gap is not None and isinstance(window.time, Ref)


def _lag(step: Operator) -> int:
    """How far (µs) a step's watermark is behind the batch's."""
    own = step.input_watermark(_LATE)
    return 0 if own is None else (_LATE - own) * 1000


def _grouped(step: Aggregate, times: set[int], until: int) -> tuple[set[int], int]:
    window = step.node.window
    if not isinstance(window, Window):
        # By a time, or by a window whose last moment it is; a watermark is whole milliseconds.
        return times, max([until, *(t + _lag(step) for t in times)])
    ends = {
        micros(each.get("end"))
        for time in times
        for each in windows_of(window, EPOCH + timedelta(microseconds=time))
    }
    return {end - 1 for end in ends}, max([until, *(end + _lag(step) for end in ends)])


def _paired(step: StreamJoin, side: int, times: set[int], until: int) -> tuple[set[int], int]:
    wait = _wait(step, side)
    later = {time + max(0, wait) for time in times}
    return times | later, max([until, *(time + wait + _lag(step) for time in times)])


def _wait(step: StreamJoin, side: int) -> int:
    """How long (µs) a side's rows wait for partners."""
    bound = step._state_watermark("left" if side == 0 else "right", _LATE)
    return 0 if bound is None else (_LATE - bound) * 1000


def _width(step: Operator) -> int | None:
    """What a step adds to Ananke's U: a window's size, a join's range; None without bound."""
    match step:
        case Sessions():
            return None
        case Aggregate(node=node) if isinstance(node.window, Window):
            return node.window.size
        case StreamJoin():
            waits = [_wait(step, side) for side in (0, 1)]
            return sum(map(abs, waits)) + 1000 * any(waits)
    return 0


def arrivals(given: Input, sources: Iterable[nodes.Source]) -> Mapping[tuple[str, int], Arrival]:
    """When each record came, and its time."""
    found: dict[tuple[str, int], Arrival] = {}
    for source in sources:
        names = source.schema.fieldNames()
        at = names.index(source.event_time) if source.event_time else None
        still = {0: given.static.get(source.name, ())}
        for number, rows in enumerate(given.batches):
            for values in (*still.get(number, ()), *rows.get(source.name, ())):
                record = (source.name, record_id(source, values))
                time = None if at is None else values[at]
                found.setdefault(record, Arrival(time, [])).batches.append(number)
    return found


@dataclass(frozen=True, slots=True)
class Arrival:
    """A record's time, and the batches that brought it."""

    time: datetime | None
    batches: list[int]
