"""The lazy modes on a random flow: sets by replay equal the interpreter's, intervals cover them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import headwater as hw
from headwater.capture.choosing import refusal
from headwater.lowering.identity import file_positions
from tests.random_flows.comparing import compare
from tests.random_flows.running import Actual, Capture, feeding, recorded_input, store_of, stored

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.testing.records import SourceData

LAZY = ("intervals", "ancestors")


@dataclass
class Excess:
    """How much more than the provenance the intervals of all results cover."""

    results: int = 0
    covered: int = 0
    needed: int = 0

    def __str__(self) -> str:
        ratio = self.covered / max(self.needed, 1)
        return (
            f"intervals of {self.results} results cover {self.covered} records where {self.needed} "
            f"are theirs ({ratio:.2f} times)"
        )


def modes(flow: hw.Flow) -> dict[str, str]:
    """A lazy mode for each sink that can have one, in turns; `none` for the others."""
    chosen = {}
    for number, (name, sink) in enumerate(flow.sinks.items()):
        possible = [m for m in LAZY if refusal(flow, sink, m) is None]
        chosen[name] = possible[number % len(possible)] if possible else "none"
    return chosen


def by_mode(chosen: dict[str, str]) -> Capture:
    """The argument of `capture=` that gives each sink its mode."""
    return {mode: [n for n, m in chosen.items() if m == mode] for mode in (*LAZY, "none")}


def problems(
    flow: hw.Flow,
    folder: Path,
    place: Path,
    chosen: dict[str, str],
    data: tuple[SourceData, ...],
    excess: Excess,
) -> list[str]:
    """What is wrong with the sets that a replay gives."""
    given = recorded_input(flow, place / "checkpoint", folder)
    found = []
    for name, sink in flow.sinks.items():
        if chosen[name] == "none":
            continue
        rules, of_intervals = [chosen[name]], list[Actual]()
        if chosen[name] == "intervals" and refusal(flow, sink, "ancestors") is None:
            # What is carried for intervals is more than ancestor functions need: ask them as well.
            rules.append("ancestors")
        for rule in rules:
            try:
                actual = stored(place, name, traced=True, rule=rule)
            except hw.HeadwaterError as error:
                found.append(f"{name} by {rule}: {error}")
                continue
            if rule == "intervals":
                of_intervals = actual
            difference = compare(sink, given, actual)
            if difference.text:
                marks = list(given.watermarks)
                found.append(f"{name} by {rule}:\n{difference.text}\nwatermarks {marks}")
        if chosen[name] == "intervals" and not found:
            found += uncovered(place, name, of_intervals, data, excess)
    return found


def uncovered(
    place: Path,
    sink: str,
    results: list[Actual],
    data: tuple[SourceData, ...],
    excess: Excess,
) -> list[str]:
    """Records of a result that its intervals do not cover; counts what they cover beyond."""
    positions = {source.name: _positions(source) for source in data}
    store = hw.open(store_of(place))
    sets: dict[tuple[int, str], set[int]] = defaultdict(set)
    for each in results:
        for source, record in each.provenance:
            sets[each.result_id, source].add(record)
    spans = store._reader.query(
        "SELECT s.result_id, n.name AS source, s.low, s.high FROM spans s "
        "JOIN sources n USING (source_no) JOIN sinks k USING (sink_no) WHERE k.name = ?",
        [sink],
    ).to_pylist()
    ends = {(s["result_id"], s["source"]): (s["low"], s["high"]) for s in spans}
    wrong = []
    for (result, source), ids in sets.items():
        if source not in positions:
            continue
        low, high = ends[result, source]
        inside = {id_ for id_, places in positions[source].items() if _any(places, low, high)}
        excess.results += 1
        excess.covered += len(inside)
        excess.needed += len(ids)
        if not ids <= inside:
            wrong.append(f"{sink}: {result} has {sorted(ids - inside)} of {source} outside")
    return wrong


def _any(places: list[int], low: int, high: int) -> bool:
    return any(low <= place <= high for place in places)


def _positions(source: SourceData) -> dict[int, list[int]]:
    """Where each record of a source lies; one that came twice lies in two places."""
    if (feed := feeding()) is not None:
        return feed.positions(source)
    found: dict[int, list[int]] = defaultdict(list)
    for number, batch in enumerate(source.batches):
        first, _ = file_positions(source.modified(number))
        for row, values in enumerate(batch):
            found[values[0]].append(first + row)
    return found
