"""Random flows with several sinks and a live graph, run on Spark and checked."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import headwater as hw
from headwater.query.follow import GraphChange
from headwater.testing import Counters, Input
from headwater.testing.graph_checking import Checked, check_graph
from headwater.testing.graph_reach import Expiry
from headwater.testing.strategies import THEMES, RandomProgram, programs
from tests.random_flows.comparing import compare
from tests.random_flows.running import Actual, recorded_input
from tests.random_flows.values import plain

SINKS = (2, 3)
HARD = ("session", "chained", "union", "join then aggregate", "join", "dedup")
"""One sink of each flow is one of these."""


@st.composite
def graph_programs(draw: st.DrawFn, batches: tuple[int, int]) -> RandomProgram:
    """A program with some sinks, whose sources mostly say themselves what their event time is."""
    hard = draw(st.sampled_from(HARD))
    others = draw(
        st.lists(
            st.sampled_from([theme for theme in THEMES if theme != hard]),
            min_size=SINKS[0] - 1,
            max_size=SINKS[1] - 1,
            unique=True,
        )
    )
    program = draw(programs((hard, *others), batches))
    if draw(st.integers(0, 4)) > 0:
        program = declared(program)
    return _with_another(draw, program) if draw(st.booleans()) else program


def _with_another(draw: st.DrawFn, program: RandomProgram) -> RandomProgram:
    """The program with one more sink, of steps that hold records one behind the other."""
    names = [source.name for source in program.data]
    left, right = draw(st.sampled_from(names)), draw(st.sampled_from(names))
    size, gap = draw(st.sampled_from([5, 10, 20])), draw(st.sampled_from([3, 8, 12]))
    slide = f', "{size // 2} seconds"' if size > 5 and draw(st.booleans()) else ""
    window = f'F.window("ts", "{size} seconds"{slide})'
    session = f'F.session_window("{{time}}", "{gap} seconds")'
    timed = '.select(F.window_time("{window}").alias("ts"), "k", "v")'
    joined = (
        f'{left}.alias("l").join({right}.filter("v > 4").alias("r"), F.expr("l.k = r.k and r.ts '
        f'between l.ts - interval {gap} seconds and l.ts + interval {size} seconds"), '
        '"left_outer").selectExpr("l.ts as ts", "l.k as k", "l.v as v")'
    )

    def grouped(frame: str, key: str) -> str:
        return f'{frame}.groupBy("k", {key}).agg(F.sum("v").alias("v"))'

    windows, sessions = grouped(left, window), grouped(left, session.format(time="ts"))
    shapes = {
        "window then session": grouped(
            windows + timed.format(window="window"), session.format(time="ts")
        ),
        "session of windows": grouped(windows, session.format(time="window")),
        "join then session": grouped(joined, session.format(time="ts")),
        "join then window": grouped(joined, window),
        "session then window": grouped(sessions + timed.format(window="session_window"), window),
        "by event time": grouped(left, '"ts"'),
    }
    # A large number: of a few options Hypothesis would leave out some a hundred times.
    shape = sorted(shapes)[draw(st.integers(0, 10**6)) % len(shapes)]
    return replace(
        program,
        text=f'{program.text}\nflow.sink("more", {shapes[shape]})  # {shape}',
        sinks=(*program.sinks, "more"),
        features=program.features | {shape},
    )


def is_bounded(program: RandomProgram) -> bool:
    """Whether Ananke's rule has a bound: no sessions, and no event time that a step sets."""
    return not any("session" in feature or "Watermark" in feature for feature in program.features)


def declared(program: RandomProgram) -> RandomProgram:
    """The program with the watermarks of its sources where the sources are declared."""
    lines = program.text.splitlines()
    for source in program.data:
        line = f'{source.name} = {source.name}.withWatermark("ts", "{source.delay}")'
        lines = [one for one in lines if one != line]
    data = tuple(replace(source, declared=True) for source in program.data)
    return replace(
        program,
        text="\n".join(lines),
        data=data,
        features=program.features - {"withWatermark"},
    )


@dataclass
class Seen:
    """What the random graphs of this session had in them."""

    flows: int = 0
    sinks: int = 0
    totals: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)

    def add(self, program: RandomProgram, checked: Checked) -> None:
        """Count a flow."""
        self.flows += 1
        self.sinks += len(program.sinks)
        self.features.update(program.features)
        self.totals.update({name: getattr(checked, name) for name in COUNTED})
        self.totals["flows with alive records"] += checked.alive > 0
        self.totals["flows with labels"] += checked.labels > 0
        self.totals["flows with records of several sinks"] += checked.shared > 0

    def note(self, counters: Counters) -> None:
        """Count what happened on the way to a sink."""
        self.totals["rows late"] += counters.late_rows
        self.totals["windows late"] += counters.late_windows
        self.totals["duplicates"] += counters.duplicates
        self.totals["sessions merged"] += counters.sessions_merged
        self.totals["unmatched"] += counters.unmatched

    def __str__(self) -> str:
        totals = ", ".join(f"{n} {what}" for what, n in sorted(self.totals.items()))
        features = ", ".join(f"{what} {n}" for what, n in sorted(self.features.items()))
        return f"{self.flows} flows with {self.sinks} sinks; {totals}; steps: {features}"


COUNTED = ("records", "results", "edges", "labels", "alive", "shared", "held", "came_again")


@dataclass(frozen=True)
class LiveRun:
    """A run with a live graph: where it is, and what its batches added."""

    place: Path
    store: hw.Store
    changes: list[GraphChange]
    given: Input


def run_live(
    flow: hw.Flow,
    folder: Path,
    name: str,
    expiry: Expiry,
    *,
    finish: bool = False,
    lake: bool = False,
) -> LiveRun:
    """Run a flow to the end of its files, perhaps for good."""
    place = folder / name
    address = f"{'delta:' if lake else ''}{place / 'store'}"
    run = flow.start(
        store=address,
        checkpoint=str(place / "checkpoint"),
        capture="eager",
        available_now=True,
        live=True,
        expiry=expiry,
    )
    run.wait()
    if finish:
        run.finish()
    store = hw.open(address)
    changes = list(store.follow(wait=False))
    return LiveRun(place, store, changes, recorded_input(flow, place / "checkpoint", folder))


def problems(
    flow: hw.Flow,
    program: RandomProgram,
    live: LiveRun,
    expiry: Expiry,
    seen: Seen | None = None,
    *,
    finished: bool = False,
) -> list[str]:
    """What is wrong with a run's graph."""
    edges = [row for change in live.changes for row in change.edges.to_pylist()]
    choices = {}
    wrong = []
    for name, sink in flow.sinks.items():
        found = compare(sink, live.given, _actual(live.store, name, edges))
        if found.text:
            wrong.append(f"{name}:\n{found.text}")
        choices[name] = found.choices
        if seen is not None:
            seen.note(found.counters)
    if wrong:
        return wrong
    sinks = list(flow.sinks.values())
    checked = check_graph(
        live.changes, sinks, live.given, expiry=expiry, choose=choices, finished=finished
    )
    if seen is not None:
        seen.add(program, checked)
    return checked.violations


def labelled(live: LiveRun) -> dict[tuple[str, int], int]:
    """The batches in which records were labelled."""
    return {
        (row["name"], row["id"]): row["batch"]
        for change in live.changes
        for row in change.labels.to_pylist()
        if row["kind"] == "source"
    }


def _actual(store: hw.Store, sink: str, edges: list[dict[str, Any]]) -> list[Actual]:
    """A sink's results, with the sets that the graph's edges make."""
    table = store.results(sink)
    # By position: a sink may have a column called event_time or result_id itself.
    rows = table.rename_columns([str(i) for i in range(table.num_columns)]).to_pylist()
    sets: dict[int, set[tuple[str, int]]] = {row["0"]: set() for row in rows}
    for edge in edges:
        if edge["sink"] == sink:
            sets[edge["result_id"]].add((edge["source"], edge["source_id"]))
    return [
        Actual(plain(list(row.values())[2:]), plain(row["1"]), frozenset(sets[row["0"]]))
        for row in rows
    ]
