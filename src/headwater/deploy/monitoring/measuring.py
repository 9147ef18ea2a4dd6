"""What the units of a deployment are doing: events in, out and in transit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.deploy.units.alert import AlertUnit
from headwater.deploy.units.job import JobUnit
from headwater.deploy.units.query import QueryUnit
from headwater.runtimes.jobs.states import OVER

if TYPE_CHECKING:
    from headwater.deploy.making import Unit


def is_idle(unit: Unit) -> bool:
    """Whether a unit has nothing to do; one that has failed for good does nothing."""
    if unit.state == "failed":
        return True
    if isinstance(unit, JobUnit):
        counts = unit.line.queue.counts()
        busy = any(number for state, number in counts.items() if state not in OVER)
        return not busy and unit.line.runtime._teller.idle and not waiting(unit)
    if isinstance(unit, AlertUnit):
        return not waiting(unit)
    return unit.state == "running" and not waiting(unit) and _waits(unit)


def waiting(unit: Unit) -> int:
    """Events of its streams that a unit has not dealt with."""
    if not isinstance(unit, QueryUnit):
        (given,) = unit.record.inputs
        return int(unit._streams.log(given.stream).bounds()[1]) - unit.position
    return sum(feeder.end - unit.position[name] for name, feeder in unit.feeders.items())


def _waits(unit: QueryUnit) -> bool:
    run = unit._run
    return run is not None and run.query is not None and not run.query.status["isTriggerActive"]
