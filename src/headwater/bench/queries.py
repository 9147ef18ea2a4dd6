"""How fast a store takes edges in and answers single lookups, by whom it is asked.

`python -m headwater.bench.queries` prints the figures as JSON.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater import store as stores
from headwater.store import (
    Batch,
    EmbeddedWriter,
    FlowRegistration,
    ResultSet,
    SinkRegistration,
    SourceRegistration,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Ids = npt.NDArray[np.int64]

PER_RESULT = 4  # records of a result, and results of a record: four overlapping windows
PER_BATCH = 100_000
OPENINGS = 10
QUICK = {"edges": 200_000, "lookups": 3}
"""Options with which figures say nothing, but everything runs."""
TIME = pa.timestamp("us", tz="UTC")
START = datetime(2024, 1, 1, tzinfo=UTC)


def measure(
    edges: int = 10_000_000,
    ids: Literal["monotone", "random"] = "monotone",
    lookups: int = 200,
) -> dict[str, Any]:
    """Fill a temporary store in many batches, then time single lookups three ways."""
    random = np.random.default_rng(7)
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        path = Path(folder) / "store"
        with EmbeddedWriter.open(path) as writer:
            figures, results, records = filled(writer, edges, ids, random)
            asked = [int(key) for key in random.choice(results, lookups)]
            known = [int(key) for key in random.choice(records, lookups)]
            figures["owner"] = _lookups(path, asked, known)
            with multiprocessing.get_context("spawn").Pool(1) as other:
                figures["other process"] = other.apply(_lookups, (path, asked, known))
        size = sum(file.stat().st_size for file in path.iterdir())
        figures["bytes per edge"] = round(size / edges, 1)
        figures["reader"] = _lookups(path, asked, known)
        figures["reader, opened anew"] = _openings(path, asked, known)
    return figures


def filled(
    writer: EmbeddedWriter, edges: int, ids: str, random: np.random.Generator
) -> tuple[dict[str, Any], Ids, Ids]:
    """Fill a store in many batches; what it took, the ids of the results and of the records."""
    writer.register(flow_of_lookups())
    results: list[Ids] = []
    records: list[Ids] = []
    per_batch = PER_BATCH // PER_RESULT
    made = 0
    spent = computed = slowest = 0.0
    for number in range(edges // PER_BATCH):
        record_ids = np.arange(per_batch) + number * per_batch
        if ids == "random":
            record_ids = random.integers(-(2**62), 2**62, per_batch)
        # A window's result comes a batch after its records.
        origins = records[-1] if records else record_ids
        batch, result_ids = made_batch(number, record_ids, origins, random)
        began, busy = time.perf_counter(), time.process_time()
        made += writer.commit(batch).edges
        took = time.perf_counter() - began
        spent += took
        computed += time.process_time() - busy
        slowest = max(slowest, took)
        results.append(result_ids)
        records.append(record_ids)
    figures = {
        "edges": made,
        "ids": ids,
        "edges per second": round(made / spent),
        "edges per CPU second": round(made / computed),
        "slowest commit, ms": round(slowest * 1000),
    }
    return figures, np.concatenate(results), np.concatenate(records)


def made_batch(
    number: int, record_ids: Ids, origins: Ids, random: np.random.Generator
) -> tuple[Batch, Ids]:
    """A batch of results with four records each, and the ids of the results."""
    count = len(record_ids)
    result_ids = random.integers(-(2**63), 2**63 - 1, count)
    times = pa.array(np.arange(count) + number * count, pa.int64()).cast(TIME)
    # Result i has the records i … i + 3 (in a circle), so each record is in four results.
    members = (np.arange(count)[:, None] + np.arange(PER_RESULT)) % count
    offsets = pa.array(np.arange(0, count * PER_RESULT + 1, PER_RESULT), pa.int32())
    sets = pa.ListArray.from_arrays(offsets, pa.array(origins[members].ravel()))
    rows = {"__hw_id": result_ids, "__hw_time": times}
    values = random.integers(0, 1000, count)
    part = ResultSet(
        pa.table({**rows, "vid": values, "n": values}),
        {"reports": pa.chunked_array([sets])},
        unique=True,
    )
    kept = {"__hw_id": record_ids, "__hw_time": times, "__hw_content": record_ids}
    table = pa.table({**kept, "tid": record_ids, "speed": values})
    return Batch("bench", number, START, {"stopped": part}, {"reports": table}), result_ids


def flow_of_lookups() -> FlowRegistration:
    """The flow of these batches."""
    key = {"kind": "column", "columns": ["tid"], "types": ["bigint"]}
    own = pa.schema([("tid", pa.int64()), ("speed", pa.int64())])
    source = SourceRegistration("reports", {"kind": "stream", "keep": "all", "id": key}, own)
    sink = SinkRegistration("stopped", {}, pa.schema([("vid", pa.int64()), ("n", pa.int64())]))
    return FlowRegistration("bench", "eager", "bench", "", "", {}, (source,), (sink,))


def _lookups(path: Path, results: Sequence[int], records: Sequence[int]) -> dict[str, float]:
    with stores.open(path) as store:
        store.backward("stopped", results[0])
        store.forward("reports", records[0])
        return {
            **_spread("backward", [_ms(partial(store.backward, "stopped", k)) for k in results]),
            **_spread("forward", [_ms(partial(store.forward, "reports", k)) for k in records]),
        }


def _openings(path: Path, results: Sequence[int], records: Sequence[int]) -> dict[str, float]:
    def backward(key: int) -> None:
        with stores.open(path) as store:
            store.backward("stopped", key)

    def forward(key: int) -> None:
        with stores.open(path) as store:
            store.forward("reports", key)

    return {
        **_spread("backward", [_ms(partial(backward, key)) for key in results[:OPENINGS]]),
        **_spread("forward", [_ms(partial(forward, key)) for key in records[:OPENINGS]]),
    }


def _ms(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def _spread(name: str, times: Sequence[float]) -> dict[str, float]:
    p50, p95 = np.quantile(times, [0.5, 0.95])
    return {f"{name} p50, ms": round(float(p50), 1), f"{name} p95, ms": round(float(p95), 1)}


def main() -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(description="Time the store: commits and single lookups.")
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--ids", choices=["monotone", "random"], default="monotone")
    parser.add_argument("--lookups", type=int, default=200)
    given = parser.parse_args()
    figures = measure(given.edges, given.ids, given.lookups)
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
