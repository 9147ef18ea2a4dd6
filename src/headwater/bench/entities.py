"""How fast a store of many dependencies answers for one entity, across jobs.

Two jobs: what the first makes the second uses. Each output depends on four inputs, and each input
reaches four outputs.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.bench.report import MIB, Table
from headwater.reduce.blocks import NO_TIME, Block, vertex_ids
from headwater.store import EmbeddedWriter
from headwater.store.jobs import Counts, JobSettings, JobWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headwater.bench.harness import Progress

FAN = 4
PER_COMMIT = 500_000
LOOKUPS = 200
GOAL = 50
"""Milliseconds: 95 of 100 answers for one entity come sooner."""

COLUMNS = {
    "asked": "",
    "rows": ",.1f",
    "median ms": ",.1f",
    "p95 ms": ",.1f",
    "CPU ms": ",.1f",
    "goal": "",
}


def measure(
    edges: int,
    *,
    lookups: int = LOOKUPS,
    folder: Path | None = None,
    progress: Progress = lambda doing, done, total: None,
) -> Table:
    """Fills a store with so many dependencies, then asks for one entity at a time."""
    import headwater as hw

    random = np.random.default_rng(7)
    with tempfile.TemporaryDirectory(prefix="headwater-bench-", dir=folder) as name:
        path = Path(name) / "store"
        first, second = edges * 9 // 10 // FAN, edges // 10 // FAN
        begin = time.perf_counter()
        with EmbeddedWriter.open(path) as writer:
            for job, outputs, inputs, count in (
                ("first", "middle", "in", first),
                ("second", "out", "middle", second),
            ):
                progress(f"reducing job {job}", 0, 0)
                _filled(writer, job, outputs, inputs, count)
        seconds = time.perf_counter() - begin
        size = sum(file.stat().st_size for file in path.iterdir() if file.is_file())
        stored = FAN * (first + second)
        title = f"One entity among {stored:,} dependencies; median and p95 of {lookups}"
        table = Table(title, COLUMNS)
        outs = [f"out/{n:09d}" for n in random.integers(0, second, lookups)]
        middles = [f"middle/{n:09d}" for n in random.integers(0, first, lookups)]
        # The first inputs reach both jobs; most others end in the first.
        ins = [f"in/{n:09d}" for n in random.integers(0, second, lookups)]
        with hw.open(path) as store:
            ways: dict[str, tuple[list[str], Callable[[str], int]]] = {
                "backward, two jobs": (outs, lambda e: store.backward(entity=e).num_rows),
                "backward, one job": (middles, lambda e: store.backward(entity=e).num_rows),
                "forward, two jobs": (ins, lambda e: store.forward(entity=e).num_rows),
                "depends": (outs, lambda e: int(store.depends(e, f"in/{int(e[4:]):09d}"))),
            }
            for done, (asked, (entities, ask)) in enumerate(ways.items()):
                progress(asked, done, len(ways))
                table.rows.append({"asked": asked, **_asked(entities, ask)})
        progress("done", len(ways), len(ways))
    table.notes.append(
        f"written and completed in {seconds:,.0f} s, {size / stored:,.1f} bytes a dependency on "
        f"disk ({size / MIB:,.0f} MiB)"
    )
    return table


def _asked(entities: list[str], ask: Callable[[str], int]) -> dict[str, Any]:
    ask(entities[0])
    spent, rows = [], []
    cpu = time.process_time()
    for entity in entities:
        begin = time.perf_counter()
        rows.append(ask(entity))
        spent.append(1000 * (time.perf_counter() - begin))
    cpu = 1000 * (time.process_time() - cpu) / len(entities)
    median, late = np.percentile(spent, [50, 95])
    return {
        "rows": round(float(np.mean(rows)), 1),
        "median ms": round(float(median), 2),
        "p95 ms": round(float(late), 2),
        "CPU ms": round(cpu, 2),
        "goal": f"met: < {GOAL} ms" if late < GOAL else f"missed: ≥ {GOAL} ms",
    }


def _filled(writer: EmbeddedWriter, job: str, outputs: str, inputs: str, count: int) -> None:
    writing = JobWriter(writer, JobSettings(job, "memory"), f"bench-{job}")
    for number, block in enumerate(_blocks(outputs, inputs, count)):
        writing.commit(number, None, [block], [], None, Counts(len(block)))
    writing.finish()


def _blocks(outputs: str, inputs: str, count: int) -> Iterator[Block]:
    """Output n was derived from the inputs n to n + 3, counted round."""
    each = PER_COMMIT // FAN
    for start in range(0, count, each):
        made = np.arange(start, min(start + each, count))
        used = (made[:, None] + np.arange(FAN)) % count
        sources = vertex_ids(_names(outputs, made), "entity")
        known = np.unique(used)
        names = _names(inputs, known)
        ids = vertex_ids(names, "entity")
        all_ids = np.concatenate([sources, ids])
        order = np.argsort(all_ids)
        all_names = pa.concat_arrays([_names(outputs, made), names]).take(pa.array(order))
        edges = FAN * len(made)
        yield replace(
            Block.empty(),
            source=np.repeat(sources, FAN),
            destination=ids[np.searchsorted(known, used.ravel())],
            time=np.full(edges, NO_TIME),
            functions=np.zeros(edges, np.int64),
            derived=np.zeros(edges, bool),
            ids=all_ids[order],
            names=all_names,
            elements=edges,
        )


def _names(kind: str, numbers: np.ndarray[Any, np.dtype[np.int64]]) -> pa.StringArray:
    digits = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 9, "0")
    return pc.binary_join_element_wise(f"{kind}/", digits, "")
