"""What a lake takes and answers as it grows: edges written by Spark's tasks, then lookups."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.dataset as pads

from headwater import store as stores
from headwater.bench.queries import flow_of_lookups, made_batch
from headwater.bench.report import Table
from headwater.cli.spark import session
from headwater.store.lake.compacting import ROWS, compact
from headwater.store.lake.place import Place
from headwater.store.lake.tables import Added, columns_of
from headwater.store.lake.tables import Table as Delta
from headwater.store.lake.tasks import TOLD, Sorted, Task, told
from headwater.store.lake.writer import LakeWriter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from headwater.bench.harness import Progress

PER_TASK = 1_000_000
"""Edges that one task makes in a batch."""
TASKS = 2
FULL = 100_000_000
GOAL = 1_000.0
"""Milliseconds within which 95 of 100 lookups are to be answered."""
LAKE = {
    "edges": ",",
    "edges/s": ",.0f",
    "bytes an edge": ".1f",
    "files": ",",
    "compaction s": ",.0f",
    "asked": "",
    "p50 ms": ",.0f",
    "p95 ms": ",.0f",
}
LISTS = {
    "files of a table": ",",
    "opening ms": ",.0f",
    "again after a commit ms": ",.0f",
    "finding one id's file ms": ",.1f",
}
FILES = (100, 1_000, 10_000)
_RUNS = "edges_by_record"


@dataclass(frozen=True, slots=True)
class Made:
    """Makes rows in a task, whatever it is given."""

    batch: int
    edges: int

    def __call__(self, rows: pa.Table, piece: int) -> Sorted:
        """The rows of one piece of a batch."""
        random = np.random.default_rng([self.batch, piece])
        count = self.edges // 4
        record_ids = random.integers(-(2**62), 2**62, count)
        made, _ = made_batch(self.batch, record_ids, record_ids, random)
        return Sorted(dict(made.results), dict(made.records), {})


def tables(
    *,
    edges: Sequence[int],
    lookups: int = 100,
    files_of_tables: Sequence[int] = FILES,
    folder: Path | None = None,
    progress: Progress = lambda doing, done, total: None,
) -> Iterator[Table]:
    """One table: at each size the rate so far, the bytes, and how long lookups take."""
    table = Table("A lake as it grows: written by tasks, compacted, then asked for one id", LAKE)
    with (
        tempfile.TemporaryDirectory(prefix="headwater-bench-", dir=folder) as made,
        session() as spark,
        LakeWriter.open(f"delta:{made}/lake") as writer,
    ):
        writer.register(flow_of_lookups())
        there, spent = 0, 0.0
        for wanted in sorted(edges):
            while there < wanted:
                progress("writing edges", there, max(edges))
                began = time.perf_counter()
                there += _batch(writer, spark, wanted - there)
                spent += time.perf_counter() - began
            progress("compacting", there, max(edges))
            began = time.perf_counter()
            compact(writer, spark, keep_hours=0)
            compacting = time.perf_counter() - began
            files, size, _ = writer.size()
            for asked, taken in _lookups(writer, lookups).items():
                table.rows.append(
                    {
                        "edges": there,
                        "edges/s": there / spent,
                        "bytes an edge": size / there,
                        "files": files,
                        "compaction s": compacting,
                        "asked": asked,
                        "p50 ms": float(np.quantile(taken, 0.5)),
                        "p95 ms": float(np.quantile(taken, 0.95)),
                    }
                )
    if there >= FULL:
        worst = max(row["p95 ms"] for row in table.rows if row["edges"] >= FULL)
        met = "met" if worst < GOAL else "missed"
        goal = f"p95 below {GOAL:,.0f} ms at {FULL:,} edges"
        table.notes.append(f"goal: {goal}; worst {worst:,.0f} ms: {met}")
    yield table
    yield listed(files_of_tables, folder)


def listed(sizes: Sequence[int], folder: Path | None) -> Table:
    """What it takes to know the files of a table, before any of them is opened."""
    table = Table("The list of a table's files, read by whoever opens the lake", LISTS)
    with tempfile.TemporaryDirectory(prefix="headwater-bench-", dir=folder) as made:
        place = Place.of(f"delta:{made}/lake")
        known = Delta(place, _RUNS, columns_of(_RUNS))
        known.make()
        there = 0
        for wanted in sorted(sizes):
            known.look()
            known.put([_unwritten(number) for number in range(there, wanted)])
            there = wanted
            began = time.perf_counter()
            again = Delta(place, _RUNS, columns_of(_RUNS))
            again.look()
            again.dataset()
            opened = time.perf_counter()
            known.put([_unwritten(there)])
            there += 1
            committed = time.perf_counter()
            again.look()
            files = again.dataset()
            seen = time.perf_counter()
            one = pads.field("source_id") == (wanted // 2 << 40) + 1
            assert len(list(files.get_fragments(one))) == 1
            table.rows.append(
                {
                    "files of a table": wanted,
                    "opening ms": (opened - began) * 1e3,
                    "again after a commit ms": (seen - committed) * 1e3,
                    "finding one id's file ms": (time.perf_counter() - seen) * 1e3,
                }
            )
    return table


def _unwritten(number: int) -> Added:
    """A file as it is noted in a table; nobody reads it."""
    low, high = number << 40, (number + 1 << 40) - 1
    names = columns_of(_RUNS).names
    stats = {
        "numRecords": ROWS,
        "minValues": {name: low if name.endswith("id") else 1 for name in names},
        "maxValues": {name: high if name.endswith("id") else 1 for name in names},
        "nullCount": dict.fromkeys(names, 0),
    }
    return Added(_RUNS, f"run-{number:032x}.parquet", ROWS * 10, ROWS, stats)


def _batch(writer: LakeWriter, spark: SparkSession, wanted: int) -> int:
    """Have tasks write a batch of edges; how many."""
    each = min(PER_TASK, max(4, wanted // TASKS))
    with writer.batch() as seq:
        catalog = writer.catalog
        task = Task(
            writer.place,
            seq,
            {sink.name: sink for sink in catalog.sinks},
            {source.name: source for source in catalog.sources},
            {},
            Made(seq, each),
        )
        added = told(spark.range(0, TASKS, 1, TASKS).mapInArrow(task, TOLD).toArrow())
        done = writer.commit("bench", seq, added, watermark=None, last=False, rows={})
    return done.edges


def _lookups(writer: LakeWriter, many: int) -> dict[str, list[float]]:
    """How long each lookup took, by direction, of ids from all over the lake."""
    random = np.random.default_rng(11)
    seqs = [int(seq) for seq in random.integers(1, _last(writer) + 1, many)]
    found = [_one(writer, seq) for seq in seqs]
    taken: dict[str, list[float]] = {"backward": [], "forward": []}
    with stores.open(str(writer.place)) as store:
        store.backward("stopped", found[0][0])
        for result, record in found:
            for asked, ask in (
                ("backward", partial(store.backward, "stopped", result)),
                ("forward", partial(store.forward, "reports", record)),
            ):
                began = time.perf_counter()
                rows = ask()
                taken[asked].append((time.perf_counter() - began) * 1e3)
                assert rows.num_rows == 4
    return taken


def _last(writer: LakeWriter) -> int:
    return int(writer.query("SELECT max(seq) AS seq FROM batches")["seq"][0].as_py())


def _one(writer: LakeWriter, seq: int) -> tuple[int, int]:
    """A result of a batch and one of its records."""
    rows = writer.query("SELECT result_id, source_id FROM edges WHERE seq = ? LIMIT 1", [seq])
    return int(rows["result_id"][0].as_py()), int(rows["source_id"][0].as_py())
