"""How far a record reaches: the watermark after which no later batch can give a result of it.

Each step has two rules: when it lets go of a row at a given time, and what time its output then
has. Composed along every path from a source to the sinks they give a record's *reach*: once a batch
has run with that watermark, the record is past. Ananke's own bound, the sum of the window sizes
along the longest path, is kept beside it; it is never earlier.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headwater.flow.reach_rules import Rule, longest_wait, rules_below
from headwater.times import NO_TIME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.flow.nodes import Node
    from headwater.flow.reach_rules import Shape

Times = npt.NDArray[np.int64]

OWN_BATCH = -(1 << 62)
"""The reach of a record that is past as soon as its own batch has run."""
FOREVER = 1 << 62
"""The reach of a record that no watermark makes past."""


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
        rules = rules_below(source, sinks, shape)
        ends = tuple(sink.step for sink in sinks if sink.step in rules)
        return cls(source.step, tuple(rules.values()), ends, longest_wait(sinks, source))

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
