"""The independent checker: what a soak left on disk, against what it must be.

Nothing here asks the service. Of each unit of each version, Spark's checkpoint says which files
each batch read and with which watermark; the reference interpreter computes from these what the
unit must have given, and the checker of live graphs compares. What lies between units (places,
streams) is compared by hand.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import headwater as hw
from headwater import streams
from headwater.deploy.building.preparing import Preparing
from headwater.deploy.records import DeploymentFiles, UnitRecord
from headwater.query.follow import GraphChange
from headwater.testing import Input, interpret, read_checkpoint
from headwater.testing.graph_checking import check_graph
from tests.random_flows.comparing import difference, key_of
from tests.random_flows.running import _rows
from tests.random_flows.values import plain

SHOWN = 20
"""Findings of a unit that are told at most."""


@dataclass
class Found:
    """What the checker looked at, and what is wrong."""

    wrong: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def say(self, where: str, lines: list[str]) -> None:
        """Note what is wrong at a place."""
        self.wrong += [f"{where}: {line}" for line in lines[:SHOWN]]
        if len(lines) > SHOWN:
            self.wrong.append(f"{where}: and {len(lines) - SHOWN} more")


def check_flows(home: Path, spark: SparkSession, found: Found) -> None:
    """Every unit of every version of every flow below a folder, and what lies between them."""
    registry, store = streams.open(home / "streams"), hw.open(home / "flows" / "store")
    try:
        for folder in sorted((home / "flows").glob("*/deployment.json")):
            files = DeploymentFiles(folder.parent)
            preparing = Preparing(files, registry, spark)
            records = [unit for unit in files.units() if unit.is_query]
            given: dict[str, dict[int, tuple[Any, ...]]] = {}
            for record in records:
                results = check_unit(files, record, preparing, store, found)
                for stream, rows in results.items():
                    twice = given.setdefault(stream, {}).keys() & rows.keys()
                    found.say(record.id, [f"result {id_} is of two units" for id_ in twice])
                    given[stream].update(rows)
            found.say(folder.parent.name, places(files, registry, records))
            for stream, rows in given.items():
                found.say(f"stream {stream}", published(registry, stream, rows))
            found.counts["versions"] += len(files.versions())
    finally:
        store.close()


def check_unit(
    files: DeploymentFiles, record: UnitRecord, preparing: Preparing, store: hw.Store, found: Found
) -> dict[str, dict[int, tuple[Any, ...]]]:
    """A unit against the interpreter; the results that it published, by stream and id."""
    flow = preparing.rebuild(record).flow
    assert flow is not None
    given = recorded(files.unit_folder(record.id), record)
    if not given.watermarks:  # cut before its first batch
        return {}
    changes = list(store.follow(flow=record.flow_name, wait=False)) if record.live else []
    if record.live and len(given.watermarks) == len(changes) + 1:
        # The last batch was begun and not committed: the unit was cut off in it.
        given = Input(given.batches[:-1], given.watermarks[:-1], {})
        found.counts["batches cut off"] += 1
    sinks = list(flow.sinks.values())

    def muted(sink: str, batch: int) -> bool:
        first = record.live_from.get(sink)
        return first is None or batch < first

    results: dict[str, dict[int, tuple[Any, ...]]] = {}
    for sink in sinks:
        name = f"{record.flow_name}/{sink.name}"
        told = [r for r in interpret(sink, given) if not muted(sink.name, r.batch)]
        expected = [_key(r.values, r.event_time, r.provenance) for r in told]
        rows, sets = stored(store, name)
        actual = [_key(row[1:], row[0], sets[id_]) for id_, row in rows.items()]
        batches = dict(zip(expected, (r.batch for r in told), strict=True))
        lines = difference(Counter(expected), Counter(actual), batches).splitlines()
        found.say(f"{record.id} {sink.name}", lines)
        found.counts["results recomputed"] += len(actual)
        found.counts["edges recomputed"] += sum(map(len, sets.values()))
        for stream in record.outputs.get(flow.notes[sink.name]["node"], ()):
            results.setdefault(stream, {}).update(rows)
    if record.live:
        check_live(record, changes, sinks, given, muted, found)
    found.counts["units"] += 1
    found.counts["batches"] += len(given.watermarks)
    return results


def check_live(
    record: UnitRecord,
    changes: list[GraphChange],
    sinks: list[Any],
    given: Input,
    muted: Any,
    found: Found,
) -> None:
    """A unit's live graph: R-V, R-E, R-L, and labels neither too early nor too late."""
    checked = check_graph(changes, sinks, given, muted=muted)
    found.say(f"{record.id} live graph", checked.violations)
    for name in ("records", "results", "edges", "labels", "alive", "held"):
        found.counts[f"graph {name}"] += getattr(checked, name)


def stored(
    store: hw.Store, name: str
) -> tuple[dict[int, tuple[Any, ...]], dict[int, set[tuple[str, int]]]]:
    """A sink's results by their ids, event time first, and the records of each."""
    table = store.results(name)
    # By position: a sink may have a column called event_time or result_id itself.
    there = table.rename_columns([str(i) for i in range(table.num_columns)]).to_pylist()
    rows = {row["0"]: tuple(row.values())[1:] for row in there}
    sets: dict[int, set[tuple[str, int]]] = {id_: set() for id_ in rows}
    if rows:
        for edge in store.backward(name, list(rows), columns=False).to_pylist():
            sets[edge["result_id"]].add((edge["source"], edge["id"]))
    return rows, sets


def recorded(folder: Path, record: UnitRecord) -> Input:
    """The batches of a unit, from its checkpoint and the files that it was fed."""
    if not (folder / "checkpoint" / "offsets").exists():
        return Input([], [], {})
    read = read_checkpoint(folder / "checkpoint")
    files = {each.node: read.of(folder / "inputs" / each.stream) for each in record.inputs}
    batches = [
        {node: [row for file in found[i] for row in _rows(file)] for node, found in files.items()}
        for i in range(len(read.watermarks))
    ]
    return Input(batches, read.watermarks, {})


def places(
    files: DeploymentFiles, registry: streams.Streams, records: list[UnitRecord]
) -> list[str]:
    """Whether, for each sink, its units read each stream without a gap and without an overlap."""
    wrong = []
    for sink in sorted({sink for record in records for sink in record.sinks}):
        if sink in ("extra", "extras"):
            continue  # comes and goes: between its units nobody reads for it
        makers = [record for record in records if sink in record.sinks]
        for stream in makers[0].cuts[sink]:
            at = 0
            for record in makers:
                begins, given = record.cuts[sink][stream], record.input(stream)
                if begins != at:
                    wrong.append(f"{record.id} {sink}: begins {stream} at {begins}, not at {at}")
                at = given.until if given is not None and given.until is not None else -1
            end = int(registry.log(stream).bounds()[1])
            if makers[-1].ended or at not in (-1, end):
                wrong.append(f"{makers[-1].id} {sink}: ended at {at} of {stream}, not at {end}")
    return wrong


def published(
    registry: streams.Streams, stream: str, rows: dict[int, tuple[Any, ...]]
) -> list[str]:
    """Whether a stream has the results of its units, each once and as they are."""
    there = registry.table(stream).to_pylist() if stream in registry else []
    wrong = []
    counted = Counter(row["event_id"] for row in there)
    wrong += [f"event {id_} is there {n} times" for id_, n in counted.items() if n > 1]
    wrong += [f"result {id_} is missing" for id_ in rows.keys() - counted.keys()]
    wrong += [f"event {id_} is no result" for id_ in counted.keys() - rows.keys()]
    for row in there:
        values = tuple(row.values())[1:]
        if row["event_id"] in rows and repr(plain(values)) != repr(plain(rows[row["event_id"]])):
            wrong.append(f"event {row['event_id']} says {values}, not {rows[row['event_id']]}")
    return wrong


def _key(values: Any, time: Any, provenance: Any) -> tuple[Any, ...]:
    """What must agree; a value that is no number is equal to itself here."""
    told = tuple("NaN" if isinstance(v, float) and v != v else v for v in values)
    return key_of(told, time, provenance, True)
