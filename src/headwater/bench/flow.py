"""What composing and coupling flows costs: Streamflow's Figures 51, 57, 59, 60, 63 and 77."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from headwater.bench import deployed, mapreduce
from headwater.bench.paired import QUARTILES, quartiles
from headwater.bench.report import Table
from headwater.compose.curve import curve
from headwater.streams.measure import measure as published

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from headwater.bench.harness import Progress

PARTS = ("publish", "labels", "runtimes", "deploy", "static", "window")

PUBLISHERS = (1, 2, 4, 8, 16, 32, 64, 128)
SECONDS = 2.0
"""How long publishers publish, each time."""
GOAL = 50_000
"""Events a second that all publishers together get into one stream."""

NODES = (1_000, 2_000, 4_000, 6_000, 8_000, 10_000)

PUBLISH = {
    "publishers": ",",
    "processes": ",",
    "events/s": ",.0f",
    QUARTILES: ",.0f",
    "waiting, events/s": ",.0f",
}
QUICK: dict[str, dict[str, Any]] = {
    "publish": {"publishers": (1, 3), "seconds": 0.1, "pairs": 1},
    "labels": {"nodes": (50, 100), "pairs": 1},
    "runtimes": {
        "seconds": 0.12,
        "rates": {"operators": (40,), "jobs": (4,)},
        "backlog": {"operators": 500, "jobs": 2},
    },
    "deploy": {"chains": (1, 6), "pairs": 1},
    "static": {"events": (30,), "static": 0.1, "pairs": 1},
    "window": {"size": 0.01, "files": 2, "windows": (2,), "pairs": 1, "warm_ups": 0},
}
"""Options of each part with which figures say nothing, but everything runs."""

LABELS = {"shape": "", "nodes": ",", "edges": ",", "ms": ",.1f", "µs each": ",.2f"}


def measure(
    part: str,
    *,
    publishers: Sequence[int] = PUBLISHERS,
    seconds: float = SECONDS,
    nodes: Sequence[int] = NODES,
    rates: Mapping[str, Sequence[int]] = deployed.RATES,
    backlog: Mapping[str, int] = deployed.BACKLOG,
    chains: Sequence[int] = deployed.CHAINS,
    events: Sequence[int] = deployed.EVENTS,
    static: float = deployed.STATIC,
    size: float = mapreduce.SIZE,
    files: int = mapreduce.FILES,
    windows: Sequence[int] = (mapreduce.WINDOW,),
    pairs: int = 3,
    warm_ups: int = 2,
    folder: Path | None = None,
    progress: Progress = lambda doing, done, total: None,
) -> Iterator[Table]:
    """Measures one part."""
    match part:
        case "publish":
            yield publishing(publishers, seconds, pairs, folder, progress)
        case "labels":
            yield labelling(nodes, pairs, progress)
        case "runtimes":
            yield deployed.runtimes(5 * seconds, folder, progress, rates, backlog)
        case "deploy":
            yield deployed.deploying(pairs, folder, progress, chains)
        case "static":
            yield deployed.reusing(pairs, folder, progress, events, static)
        case "window":
            yield mapreduce.measure(
                size=size,
                files=files,
                windows=windows,
                pairs=pairs,
                warm_ups=warm_ups,
                folder=folder,
                progress=progress,
            )
        case _:
            raise ValueError(f"there is no part {part!r}")


def publishing(
    publishers: Sequence[int], seconds: float, pairs: int, folder: Path | None, progress: Progress
) -> Table:
    """Small events into one stream, by more and more publishers (Figure 57)."""
    rates: dict[tuple[int, bool], list[float]] = {}
    place = None if folder is None else str(folder)
    total = len(publishers) * 2 * pairs
    # In turns, so that a busy moment of the machine meets all alike.
    for turn in range(pairs):
        for at, number in enumerate(publishers):
            for waiting in (False, True):
                done = (turn * len(publishers) + at) * 2 + waiting
                progress(f"{number} publishers{', waiting' if waiting else ''}", done, total)
                found = published(
                    number,
                    seconds,
                    processes=_processes(number),
                    waiting=waiting,
                    folder=place,
                )
                rates.setdefault((number, waiting), []).append(found.rate)
    progress("done", total, total)
    table = Table(f"Publishing into one stream; medians of {pairs} × {seconds:g} s", PUBLISH)
    for number in publishers:
        row: dict[str, Any] = {"publishers": number, "processes": _processes(number)}
        row["events/s"] = round(statistics.median(rates[number, False]))
        row[QUARTILES] = quartiles(rates[number, False])
        row["waiting, events/s"] = round(statistics.median(rates[number, True]))
        table.rows.append(row)
    least = min(row["events/s"] for row in table.rows)
    table.notes.append(
        f"goal {'met' if least >= GOAL else 'missed'}: ≥ {GOAL:,} events a second at any number"
    )
    table.notes.append(
        "an event counts once it is safe, and all were found in the stream; publishers send events "
        "one by one, which go in batches; waiting: a publisher waits for each event to be safe"
    )
    return table


def _processes(publishers: int) -> int:
    """The publishers are threads of so many processes."""
    return min(2, publishers)


def labelling(nodes: Sequence[int], pairs: int, progress: Progress) -> Table:
    """Labelling and partitioning as flows grow (Figure 59): a line, as time grows with the size."""
    progress("compiling", 0, 1)
    points = curve(nodes, repetitions=pairs)
    progress("done", 1, 1)
    table = Table(f"Labelling and partitioning; the best of {pairs}, seconds of CPU", LABELS)
    for point in sorted(points, key=lambda point: (point.shape, point.nodes)):
        table.rows.append(
            {
                "shape": point.shape,
                "nodes": point.nodes,
                "edges": point.edges,
                "ms": round(point.seconds * 1e3, 2),
                "µs each": round(point.each, 3),
            }
        )
    table.notes.append("each: a node or an edge; a level column means linear time")
    return table
