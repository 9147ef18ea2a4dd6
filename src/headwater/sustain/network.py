"""A network of queues: what each node of a flow has to do, before anything runs.

By Burke's theorem what leaves a steady M/M/c queue is Poisson again at the rate that came in, and
by Jackson's the queues of a network may be looked at one by one; so rates are passed on from the
sources, times the cardinality of each node, and each node is an M/M/c queue by itself. Behind one
that can't keep up fewer events come than is said here: every such node shows, not only the first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from headwater.errors import FlowError
from headwater.sustain.erlang import Steady
from headwater.sustain.rates import Flowing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Outlook = Literal["sustainable", "unsustainable", "unknown"]


@dataclass(frozen=True, slots=True)
class Station:
    """A node as a queue. Stations are given after those that they read."""

    name: str
    inputs: tuple[str, ...] = ()
    """Nothing for a source, whose rate is given by its own name."""
    cardinality: float | None = 1.0
    """Events out for each in; None if that is not known."""
    exact: bool = True
    """Otherwise the cardinality is at most that."""
    pace: float | None = None
    """Events out a second whatever comes in, at most: those of a window of time."""
    service: float | None = None
    """Seconds for one task; None if not known."""
    slots: int = 1
    batch: float = 1.0
    """Events in one task."""
    tick: float | None = None
    """Tasks a second whatever comes in: one for each window of time."""
    shown: bool = True
    """Whether it is a node of its own, not only a part of what another gives out."""

    def __post_init__(self) -> None:
        for name in ("cardinality", "pace", "service", "tick"):
            value = getattr(self, name)
            if value is not None and not (value >= 0 and math.isfinite(value)):
                raise FlowError(f"{name}={value} of node {self.name!r} is not a number from 0 on")
        if self.slots < 1 or self.batch < 1:
            raise FlowError(
                f"slots={self.slots}, batch={self.batch} of node {self.name!r}: give 1 or more"
            )


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a node comes to; None is what is not known, and `reason` says why."""

    node: str
    outlook: Outlook
    reason: str
    arrivals: float | None = None
    """Events a second that come in; those of a source that come from outside."""
    exact: bool = True
    """Otherwise all numbers are at most that."""
    tasks: float | None = None
    """Tasks a second: fewer than events where one takes several."""
    service: float | None = None
    slots: int | None = None
    utilisation: float | None = None
    waiting: float | None = None
    """Tasks that wait for a slot (Equation 5)."""
    in_transit: float | None = None
    """Tasks that wait or run (Little's law)."""
    time: float | None = None
    """Seconds that a task waits and runs."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The forecasts of all nodes, and how much the sources could send."""

    forecasts: tuple[Forecast, ...]
    factor: float | None
    """By how much all rates could be multiplied; None where no service time is known."""
    bottleneck: str | None
    """The node that sets the factor."""
    largest: Mapping[str, float]
    """The rate below which each source has to stay while the others are as given."""

    @property
    def outlook(self) -> Outlook:
        """Unsustainable if a node is, else unknown if one is that has a service time."""
        told = {f.outlook for f in self.forecasts if f.service is not None}
        if "unsustainable" in told:
            return "unsustainable"
        open_source = any(f.slots is None and f.outlook == "unknown" for f in self.forecasts)
        return "unknown" if "unknown" in told or open_source or not told else "sustainable"

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """Nodes without a service time."""
        return tuple(f.node for f in self.forecasts if f.service is None and f.slots is not None)


def forecast(stations: Iterable[Station], rates: Mapping[str, float]) -> Outcome:
    """Solve a network for the rates of its sources; a rate of any other node replaces its output.

    >>> made = forecast(
    ...     [Station("radar"), Station("storms", ("radar",), service=0.2, slots=4)], {"radar": 5}
    ... )
    >>> made.outlook, made.forecasts[1].utilisation, made.largest
    ('sustainable', 0.25, {'radar': 20.0})
    """
    for name, rate in rates.items():
        if not (rate >= 0 and math.isfinite(rate)):
            raise FlowError(f"the rate {rate} of {name!r} is not a number from 0 on")
    out: dict[str, Flowing | None] = {}
    work: dict[str, tuple[Station, Flowing]] = {}
    forecasts = []
    for station in stations:
        if not station.inputs:
            out[station.name] = Flowing.of(station.name)
            forecasts.append(_source(station, rates))
            continue
        comes = _sum(out[name] for name in station.inputs)
        tasks = _tasks(station, comes)
        if station.shown:
            forecasts.append(_node(station, comes, tasks, rates))
        if tasks is not None and not tasks.missing(rates) and station.service:
            work[station.name] = station, tasks
        given = station.name in rates
        out[station.name] = Flowing.of(station.name) if given else _leaves(station, comes)
    factor, bottleneck = _headroom(work, rates)
    largest = _largest(work, rates)
    return Outcome(tuple(forecasts), factor, bottleneck, largest)


def _sum(parts: Iterable[Flowing | None]) -> Flowing | None:
    total = Flowing()
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def _leaves(station: Station, comes: Flowing | None) -> Flowing | None:
    if station.pace is not None:
        return Flowing(fixed=station.pace, exact=False)
    if comes is None or station.cardinality is None:
        return None
    return comes.times(station.cardinality, exact=station.exact)


def _tasks(station: Station, comes: Flowing | None) -> Flowing | None:
    if station.tick is not None:
        return Flowing(fixed=station.tick, exact=False)
    return None if comes is None else comes.times(1 / station.batch)


def _source(station: Station, rates: Mapping[str, float]) -> Forecast:
    if station.name not in rates:
        return Forecast(station.name, "unknown", "its rate is not given")
    return Forecast(station.name, "sustainable", "a source", arrivals=rates[station.name])


def _node(
    station: Station, comes: Flowing | None, tasks: Flowing | None, rates: Mapping[str, float]
) -> Forecast:
    name, service, slots = station.name, station.service, station.slots
    arrivals = None
    if comes is None:
        reason = "the cardinality of a node before it is not known"
    elif missing := comes.missing(rates):
        reason = f"the rate of {', '.join(missing)} is not given"
    else:
        arrivals, reason = comes.at(rates), "its service time is not known"
    exact = comes is None or comes.exact
    if service is None or tasks is None or tasks.missing(rates):
        return Forecast(name, "unknown", reason, arrivals, exact, None, service, slots)
    steady = Steady(tasks.at(rates), service, slots)
    outlook: Outlook = "sustainable" if steady.sustainable else "unsustainable"
    busy = f"{steady.load:.3g} of {slots} slots busy"
    reason = busy if tasks.exact else f"at most {busy}"
    if outlook == "unsustainable" and not tasks.exact:
        outlook, reason = "unknown", f"{reason}; fewer events may come than that"
    return Forecast(
        name,
        outlook,
        reason,
        arrivals,
        exact and tasks.exact,
        steady.rate,
        service,
        slots,
        steady.utilisation,
        steady.waiting,
        steady.in_transit,
        steady.time,
    )


def _headroom(
    work: Mapping[str, tuple[Station, Flowing]], rates: Mapping[str, float]
) -> tuple[float | None, str | None]:
    """How much all sources could be multiplied by before a node is full, and which node."""
    most: dict[str, float] = {}
    for name, (station, tasks) in work.items():
        driven = tasks.at(rates) - tasks.fixed
        if driven > 0:
            assert station.service is not None
            most[name] = max(0.0, station.slots / station.service - tasks.fixed) / driven
    if not most:
        return None, None
    bottleneck = min(most, key=lambda name: most[name])
    return most[bottleneck], bottleneck


def _largest(
    work: Mapping[str, tuple[Station, Flowing]], rates: Mapping[str, float]
) -> dict[str, float]:
    """For each source the rate at which the first node is full, the others being as given."""
    largest: dict[str, float] = {}
    for station, tasks in work.values():
        for source, share in tasks.shares.items():
            if share > 0:
                assert station.service is not None
                others = tasks.at(rates) - share * rates[source]
                most = max(0.0, station.slots / station.service - others) / share
                largest[source] = min(most, largest.get(source, math.inf))
    return largest
