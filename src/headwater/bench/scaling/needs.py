"""What far more would need, by the models: a table made from those of a report."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from headwater.bench.scaling import growth, lake, machines
from headwater.store.lake.compacting import ROWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

EDGES = 10**12
NODES, CORES = 100, 16
"""A cluster, and the cores of each of its nodes."""
BATCH = 10**9
"""Edges of a batch of such a cluster."""
KEYS = 10**9


def needs(tables: Iterable[Mapping[str, Any]], machine: Mapping[str, Any]) -> dict[str, Any]:
    """A table of what a large lake and a large cluster would need, as far as it can be said."""
    known, cores = list(tables), int(machine["cores"])
    lists = _rows(known, lake.LISTS)
    rows = [
        {"what": what, "how it is reckoned": how, "needs": figure, "unit": unit}
        for what, how, figure, unit in [
            *_of_lake(_rows(known, lake.LAKE), lists, cores),
            *_of_files(lists),
            *_of_cluster(_rows(known, growth.MODEL), _rows(known, machines.COLUMNS), cores),
        ]
    ]
    title = f"By the models: {EDGES:,} edges, and {NODES} nodes of {CORES} cores"
    return {"title": title, "rows": rows, "notes": []}


Need = tuple[str, str, float, str]


def _rows(tables: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> list[dict[str, Any]]:
    """The rows of the tables that have such columns: of these, the last ones count."""
    must = [name for name in columns if name not in ("speed-up", "95 %")]
    return [
        row
        for table in tables
        for row in table["rows"]
        if all(any(name in each for each in table["rows"]) for name in must)
    ]


def _of_lake(rows: list[dict[str, Any]], lists: list[dict[str, Any]], cores: int) -> Iterator[Need]:
    if not rows:
        return
    most = max(row["edges"] for row in rows)
    [last, *_] = there = [row for row in rows if row["edges"] == most]
    yield (
        "bytes of the lake, compacted",
        f"{last['bytes an edge']:.1f} bytes an edge, as at {most:,} edges",
        last["bytes an edge"] * EDGES / 1e12,
        "TB",
    )
    yield (
        "files of the edges, and of their runs by record",
        f"{ROWS:,} rows a file, twice",
        2 * EDGES / ROWS,
        "files",
    )
    hours = EDGES / (last["edges/s"] / cores) / 3600
    yield (
        "writing",
        f"{last['edges/s'] / cores:,.0f} edges/s a core",
        hours,
        "core hours",
    )
    yield "writing, on the cluster", "the same, no loss", hours / (NODES * CORES), "hours"
    sorting = sum({row["edges"]: row["compaction s"] for row in rows}.values())
    yield (
        "compacting, each edge once",
        f"{1e6 * sorting * cores / most:,.2f} µs of a core an edge",
        EDGES * sorting * cores / most / 3600,
        "core hours",
    )
    if not lists:
        return
    known = max(lists, key=lambda row: int(row["files of a table"]))
    # Groups and the files in one: the root of the files.
    more = math.sqrt(EDGES / ROWS / known["files of a table"]) * known["finding one id's file ms"]
    for row in there:
        yield (
            f"{row['asked']} of one id, p95",
            f"{row['p95 ms']:,.0f} ms as at {most:,} edges, and {more:,.0f} ms to find its file",
            row["p95 ms"] + more,
            "ms",
        )


def _of_files(rows: list[dict[str, Any]]) -> Iterator[Need]:
    if rows:
        last = max(rows, key=lambda row: int(row["files of a table"]))
        each = last["opening ms"] / last["files of a table"]
        yield (
            "opening the list of the files of the edges, by whoever reads or writes",
            f"{1e3 * each:,.0f} µs a file, as at {last['files of a table']:,} files",
            each * EDGES / ROWS / 1e3,
            "s",
        )


def _of_cluster(
    model: list[dict[str, Any]], speed: list[dict[str, Any]], cores: int
) -> Iterator[Need]:
    cost = {(row["model"], row["store"], row["of"]): row["costs"] for row in model}
    if not cost:
        return
    tasks = NODES * CORES
    each = cost["seconds of a batch", "lake", "a task of a sink"]
    fixed = cost["seconds of a batch", "lake", "a batch"]
    yield (
        "a batch without any rows, one sink",
        (
            f"{fixed / 1e3:,.0f} ms, and {each / 1e3:,.1f} ms for each of {tasks:,} tasks, if they "
            "are done one after the other"
        ),
        (fixed + each * tasks) / 1e6,
        "s",
    )
    work = sum(
        cost["seconds of a batch", "lake", of] for of in ("a record in a window", "an edge written")
    )
    yield (
        f"a batch of {BATCH:,} edges",
        f"{work:,.2f} µs an edge of all cores here, spread over all cores there",
        work * BATCH / 1e6 * cores / tasks,
        "s",
    )
    window = cost["bytes of state", "both", "an open window of a key"]
    held = cost["bytes of state", "both", "an id in an open window"]
    yield (
        f"state of {KEYS:,} keys with a window open each, 10 ids in it",
        f"{window:,.0f} bytes a window, {held:,.1f} bytes an id",
        (window + 10 * held) * KEYS / NODES / 1e9,
        "GB a node",
    )
    for row in speed:
        if row.get("speed-up") is not None and row["store"] == "lake":
            yield (
                f"{row['with']} against one, into a lake",
                "measured; what is lost is the driver's part, and the machine's other work",
                row["speed-up"],
                "times",
            )
