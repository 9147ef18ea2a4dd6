"""Cuts: at which places of their streams one version ends and the next begins.

A stream from outside is cut where the furthest of the units that end has been fed to; a stream that
a unit of the same version makes, at its end, once that unit has ended. What takes a unit's place
begins there. If it keeps state, it reads from as far back as an event can still matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.deploy.units.feeding import first_since
from headwater.deploy.units.query import QueryUnit, watermark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.deploy.building.preparing import Built
    from headwater.deploy.making import Unit
    from headwater.deploy.records import Change, DeploymentFiles, InputRecord, UnitRecord
    from headwater.streams import Streams


class Cutting:
    """The cuts of one change."""

    def __init__(self, files: DeploymentFiles, streams: Streams, change: Change) -> None:
        self._files, self._streams, self._change = files, streams, change
        self._made: set[str] = set()

    # --- where units end ----------------------------------------------------------------------

    def cut_outside(self, old: Sequence[Unit]) -> None:
        """Cut the streams that go on, each at one place for all units that end."""
        self._made = {s for unit in old for names in unit.record.outputs.values() for s in names}
        places: dict[str, int] = {}
        for unit in old:
            for each in unit.record.inputs:
                if each.stream not in self._made:
                    at = _fed(unit, each) if each.until is None else each.until
                    places[each.stream] = max(places.get(each.stream, 0), at)
        for unit in old:
            unit.cut(places)

    def cut_inside(self, unit: Unit) -> None:
        """Cut streams whose makers have ended, at their ends."""
        made = (each.stream for each in unit.record.inputs if each.stream in self._made)
        unit.cut({stream: self._end(stream) for stream in made})

    # --- where units begin --------------------------------------------------------------------

    def begin(self, built: Built, old: Sequence[Unit]) -> None:
        """Say where a new unit begins in each of its streams, and where each sink's results do."""
        record = built.record
        ended = [unit.record for unit in old]
        left = [unit for unit in reversed(self._files.units()) if unit.ended]
        starts = {each.stream: self._end(each.stream) for each in record.inputs}
        for sink in record.sinks:
            cut = {}
            for each in record.inputs:
                before = self._before(record, each, ended, sink)
                if before is None and self._change.since == "left":
                    before = self._before(record, each, left, sink)
                if before is None and self._change.since != "start":
                    # The sink is new; the unit goes on from another, or begins now.
                    before = self._before(record, each, ended)
                start, at = self._from(built, each, before)
                starts[each.stream] = min(starts[each.stream], start)
                cut[each.stream] = at
            record.cuts[sink] = cut
        for each in record.inputs:
            each.start = starts[each.stream]
            each.cut = max((cut[each.stream] for cut in record.cuts.values()), default=each.start)
        # A unit that does not go back has nothing to build up: its first batch counts.
        for sink in record.sinks:
            if record.cuts[sink] == starts:
                record.live_from[sink] = 0

    def _before(
        self,
        record: UnitRecord,
        given: InputRecord,
        ended: Sequence[UnitRecord],
        sink: str | None = None,
    ) -> UnitRecord | None:
        """The unit whose place a new one takes: it has some of its nodes, and read the stream.

        With a `sink`, one that gave this out, too.
        """
        for other in ended:
            shared = set(other.nodes) & set(record.nodes)
            taken = other.input(given.stream)
            fits = sink is None or sink in other.sinks
            if shared and fits and taken is not None and taken.until is not None:
                return other
        return None

    def _from(self, built: Built, given: InputRecord, before: UnitRecord | None) -> tuple[int, int]:
        """Where to begin to read for a sink, and where its results begin."""
        if before is None:
            first = int(self._streams.log(given.stream).bounds()[0])
            at = first if self._change.since == "start" else self._end(given.stream)
            return at, at
        taken = before.input(given.stream)
        assert taken is not None
        assert taken.until is not None
        if not built.record.stateful or built.flow is None:
            return taken.until, taken.until
        return min(taken.until, self._back(built, given, before, taken)), taken.until

    def _end(self, stream: str) -> int:
        return int(self._streams.log(stream).bounds()[1])

    def _back(
        self, built: Built, given: InputRecord, before: UnitRecord, taken: InputRecord
    ) -> int:
        """The place from which on events can still matter to results after the cut."""
        assert built.flow is not None
        source = built.flow.sources[given.node]
        reach = built.flow.reach(source, list(built.flow.sinks.values()))
        reached = self._watermark(before)
        since = None if reached is None else reach.alive_since(reached)
        if since is None or source.event_time is None:
            return taken.start
        return first_since(self._streams, given.stream, taken.start, source.event_time, since)

    def _watermark(self, record: UnitRecord) -> int | None:
        return watermark(self._files.unit_folder(record.id) / "checkpoint")


def _fed(unit: Unit, given: InputRecord) -> int:
    if isinstance(unit, QueryUnit):
        return unit.feeders[given.stream].position
    return unit.position
