"""What the units of a deployment are doing: events in, out and in transit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.deploy.units.alert import AlertUnit
from headwater.deploy.units.job import JobUnit
from headwater.deploy.units.query import QueryUnit
from headwater.runtimes.jobs.states import OVER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.deploy.making import Unit


def all_idle(units: Iterable[Unit]) -> bool:
    """Whether units that may feed one another have nothing to do, all at once.

    They are asked one after the other, and hand on through streams: one that was idle may have been
    given something since by one that is asked later. No stream may have grown meanwhile.
    """
    asked = list(units)
    ends = [_ends(unit) for unit in asked]
    return all(is_idle(unit) for unit in asked) and ends == [_ends(unit) for unit in asked]


def is_idle(unit: Unit) -> bool:
    """Whether a unit has nothing to do; one that has failed for good does nothing.

    Asked in the order in which an event goes through it, so that none slips by between two answers.
    """
    if unit.state == "failed":
        return True
    if waiting(unit):
        return False
    if isinstance(unit, AlertUnit):
        return True
    if isinstance(unit, JobUnit):
        counts = unit.line.queue.counts()
        busy = any(number for state, number in counts.items() if state not in OVER)
        return not busy and unit.line.runtime._teller.idle
    run = unit._run
    return unit.state == "running" and run is not None and run.is_waiting


def waiting(unit: Unit) -> int:
    """Events of its streams that a unit has not dealt with."""
    if not isinstance(unit, QueryUnit):
        (end,) = _ends(unit)
        return end - unit.position
    return sum(feeder.end - unit.position[name] for name, feeder in unit.feeders.items())


def _ends(unit: Unit) -> list[int]:
    """Where the streams of a unit end."""
    if isinstance(unit, QueryUnit):
        return [feeder.end for feeder in unit.feeders.values()]
    return [int(unit._streams.log(given.stream).bounds()[1]) for given in unit.record.inputs]
