"""Cuts: at which places of their streams one version ends and the next begins.

A stream from outside is cut where the furthest of the units that end has been fed to; a stream that
a unit of the same version makes, at its end, once that unit has ended. What takes a unit's place
begins there. If it keeps state, it reads from as far back as an event can still matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.deploy.job_unit import JobUnit
from headwater.deploy.query_unit import QueryUnit
from headwater.flow import nodes as steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.deploy.deployment import Unit
    from headwater.deploy.preparing import Built
    from headwater.deploy.records import Change, DeploymentFiles, InputRecord, UnitRecord
    from headwater.streams import Streams


class Cutting:
    """The cuts of one change."""

    def __init__(self, files: DeploymentFiles, streams: Streams, change: Change) -> None:
        self._files, self._streams, self._change = files, streams, change
        self._made: set[str] = set()

    # --- where units end ----------------------------------------------------------------------

    def cut_outside(self, old: Sequence[Unit]) -> None:
        """Cut the streams that go on; units that read them from elsewhere are not concerned."""
        self._made = {s for unit in old for names in unit.record.outputs.values() for s in names}
        places: dict[str, int] = {}
        for unit in old:
            for each in unit.record.inputs:
                at = _fed(unit, each) if each.until is None else each.until
                places[each.stream] = max(places.get(each.stream, 0), at)
        for unit in old:
            if not any(each.stream in self._made for each in unit.record.inputs):
                unit.cut(places)

    def cut_inside(self, unit: Unit) -> None:
        """Cut streams whose makers have ended, at their ends."""
        places = {}
        for each in unit.record.inputs:
            if each.stream in self._made:
                places[each.stream] = int(self._streams.log(each.stream).bounds()[1])
            else:
                places[each.stream] = _fed(unit, each)
        unit.cut(places)

    # --- where units begin --------------------------------------------------------------------

    def begin(self, built: Built, old: Sequence[Unit]) -> None:
        """Say where a new unit begins in each of its streams."""
        record = built.record
        ended = [unit.record for unit in old]
        if self._change.since == "left":
            ended += [r for r in reversed(self._files.units()) if r.ended and r not in ended]
        for each in record.inputs:
            before = self._before(record, each, ended)
            if before is None:
                each.start = each.cut = self._fresh_start(each)
                continue
            taken = before.input(each.stream)
            assert taken is not None
            assert taken.until is not None
            each.start = each.cut = taken.until
            if record.stateful and built.flow is not None:
                each.start = min(each.cut, self._back(built, each, before, taken))
        if any(each.start < each.cut for each in record.inputs):
            record.live_from = None

    def _before(
        self, record: UnitRecord, given: InputRecord, ended: Sequence[UnitRecord]
    ) -> UnitRecord | None:
        """The unit whose place a new one takes: it has some of its nodes, and read the stream."""
        for other in ended:
            shared = set(other.nodes) & set(record.nodes)
            taken = other.input(given.stream)
            if shared and taken is not None and taken.until is not None:
                return other
        return None

    def _fresh_start(self, given: InputRecord) -> int:
        start, end = (int(place) for place in self._streams.log(given.stream).bounds())
        return start if self._change.since == "start" else end

    def _back(
        self, built: Built, given: InputRecord, before: UnitRecord, taken: InputRecord
    ) -> int:
        """The place from which on events can still matter to results after the cut."""
        assert built.flow is not None
        source = built.flow.sources[given.node]
        reach = built.flow.reach(source, list(built.flow.sinks.values()))
        watermark = self._watermark(before)
        if watermark is None or source.event_time is None or not isinstance(source, steps.Source):
            return taken.start
        since = reach.alive_since(watermark)
        if since is None:
            return taken.start
        from headwater.deploy.feeding import first_since

        return first_since(self._streams, given.stream, taken.start, source.event_time, since)

    def _watermark(self, record: UnitRecord) -> int | None:
        from headwater.deploy.query_unit import watermark

        return watermark(self._files.unit_folder(record.id) / "checkpoint")


def _fed(unit: Unit, given: InputRecord) -> int:
    if isinstance(unit, QueryUnit):
        return unit.feeders[given.stream].position
    assert isinstance(unit, JobUnit)
    return unit.position
