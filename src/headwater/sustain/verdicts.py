"""Whether a queue can go on like that: a verdict from the history of its lengths.

A length that goes up says little: it does so with every burst and every wave of the input. What
counts is the floor, the least length within a stretch of time: that of a queue that keeps up comes
back to where it was, however high the waves are, and that of one that doesn't rises.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from headwater.sustain.erlang import Steady

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.sustain.history import Numbers, Series

State = Literal["unknown", "healthy", "bursting", "growing"]

LEAST = 48
"""Pieces of time without which nothing is said."""
_PART = 120
"""Pieces that a part of the history needs, or a burst of half a minute would fill it."""
FEWEST = 10
"""Events without which nothing is said."""
BUSIEST = 0.9
"""The utilisation up to which a length is excused as steady."""
_STRETCHES = (8, 16, 32)
"""Into how many stretches a window is cut, each in turn."""
_RISES = {1: 5, 2: 6, 4: 6}
"""How many of the 7 rises between eight stretches have to be upwards: of all, a half, a quarter."""
_SURE, _SURER = 2.4, 5.0
"""How many standard errors the floors' mean rise has to be above 0: where the floor is already
higher than a steady queue's length hardly ever is, and where it is not."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said of a queue, and why."""

    state: State
    reason: str
    slope: float | None = None
    """Events a second by which the floor rises or falls."""
    expected: float | None = None
    """The length by Little's law at the rate and service time that were measured."""
    limit: float | None = None
    """The length above which it is bursting."""
    exhaustion: float | None = None
    """Seconds until the capacity is full, if it goes on growing like this."""

    @property
    def sustainable(self) -> bool | None:
        """Whether it can go on like that; None if that is not known."""
        return None if self.state == "unknown" else self.state != "growing"


@dataclass(frozen=True, slots=True)
class Growth:
    """The floor's rise over some time."""

    slope: float
    sure: float
    """How many standard errors the mean rise from stretch to stretch is above 0."""
    seconds: float


def judge(
    series: Series,
    *,
    slots: int = 1,
    service: float | None = None,
    delay: float = 0.0,
    capacity: float | None = None,
) -> Verdict:
    """The verdict on a history."""
    if series.pieces < LEAST:
        have, need = (_seconds(pieces * series.every) for pieces in (series.pieces, LEAST))
        return Verdict("unknown", f"{have} of history; {need} are needed")
    events = series.totals.taken - series.first.taken
    now = float(series.last[-1])
    expected, limit = _expectation(series, slots, service, delay)
    if events < FEWEST and now > 0:
        text = f"{events:.0f} events in {_seconds(series.span)}; {FEWEST} are needed"
        return Verdict("unknown", text, None, expected, limit)
    found = growth(series, max(expected, slots), limit)
    if found is not None:
        left = None if capacity is None else max(0.0, capacity - now) / found.slope
        text = f"its floor rises by {found.slope:.3g}/s over {_seconds(found.seconds)}"
        return Verdict("growing", text, found.slope, expected, limit, left)
    recent = series.high[-(series.pieces // 4) :]
    peak, slope = float(recent.max()), _trend(series)
    if peak > limit:
        if now > limit:
            ends = f", empty in {_seconds(now / -slope)}" if slope < 0 else ""
            text = f"{now:.0f} in transit, above {limit:.0f}{ends}"
        else:
            text = f"up to {peak:.0f} in transit, drained to {now:.0f}"
        return Verdict("bursting", text, slope, expected, limit)
    return Verdict("healthy", f"up to {peak:.0f} in transit", slope, expected, limit)


def growth(series: Series, above: float, limit: float) -> Growth | None:
    """The growth of the floor, if there is any that is sure, seen in the shortest time.

    It is looked for in all of the history and in its last half and quarter, so that an increase is
    found soon; there, though, the floor has to be above every length before, as otherwise the next
    rise of a wave would be one.
    """
    found = None
    for part, upwards in _RISES.items():
        size = series.pieces // part
        before = series.high[: series.pieces - size]
        ceiling = max(above, float(before.max()) if len(before) else 0.0)
        window = series.low[-size:]
        enough = size >= (LEAST if part == 1 else _PART)
        if not enough or not _goes_on(window, series.counts[-size:], upwards):
            continue
        for stretches in _STRETCHES:
            floors = _floors(window, stretches)
            if size < 4 * stretches or floors[-1] <= ceiling:
                continue
            rises = np.diff(floors)
            mean, spread = float(rises.mean()), float(rises.std(ddof=1))
            error = spread / math.sqrt(len(rises))
            sure = math.inf if error == 0 else mean / error
            if mean > 0 and sure >= (_SURE if floors[-1] > limit else _SURER):
                seconds = size * series.every
                found = Growth(mean / (seconds / stretches), sure, seconds)
                break
    return found


def _goes_on(low: Numbers, counts: Numbers, upwards: int) -> bool:
    """Whether the floor rises most of the time, and still does: what a burst leaves does not."""
    rises = np.diff(_floors(low, _STRETCHES[0]))
    # Both arrivals and service vary: twice the events of a stretch are the variance of its rise.
    noise = math.sqrt(2 * counts.sum() / _STRETCHES[0])
    return bool((rises > 0).sum() >= upwards and rises[-1] >= -noise)


def _expectation(
    series: Series, slots: int, service: float | None, delay: float
) -> tuple[float, float]:
    """The length by Little's law, and the one that a steady queue hardly ever has."""
    # The median over stretches: a burst is not what is expected.
    pieces = [piece.mean() for piece in _cut(series.counts, 16)]
    rate = float(np.median(pieces)) / series.every
    held = rate * delay
    if service is None:
        usual = max(1.0, float(np.median(series.last)) - held)
        return usual + held, Steady(usual / (1 + usual), 1.0, 1).limit() + held
    steady = Steady(min(rate, BUSIEST * slots / service) if service else rate, service, slots)
    # Of what is held back, a batch comes at once and the next gathers meanwhile.
    return steady.in_transit + held, steady.limit() + 3 * held


def _floors(low: Numbers, stretches: int) -> Numbers:
    """The least length in each of equal stretches."""
    return np.array([piece.min() for piece in _cut(low, stretches)])


def _trend(series: Series) -> float:
    """The slope of the floor over the last quarter of the history, by its ends."""
    recent = series.low[-(series.pieces // 4) :]
    half = len(recent) // 2
    rise = float(recent[half:].min() - recent[:half].min())
    return rise / (half * series.every)


def _cut(values: Numbers, stretches: int) -> Iterator[Numbers]:
    """Values in equal stretches; the oldest few are left out where they don't divide."""
    size = len(values) // stretches
    start = len(values) - size * stretches
    return (values[start + n * size : start + (n + 1) * size] for n in range(stretches))


def _seconds(length: float) -> str:
    """A length of time as people say it."""
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if length >= 2 * size:
            return f"{length / size:.3g} {unit}"
    return f"{length:.3g} s"
