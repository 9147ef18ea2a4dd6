"""SAF's storage experiment: bytes on disk for the provenance of a chain of components.

Stored with contents at every step, as keys with the contents of the first input only (the paper's
reduction), and by Headwater in each mode. The first two are DuckDB files too, so that all are
measured in the engine of Headwater's store. Contents are random bytes, which no engine can shorten;
keys are compressed as the engine does it. Headwater reads its source again when asked, so it copies
no content unless told to (`keep="all"`); its results are kept whole, or by their keys alone as the
paper keeps them.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa

from headwater.bench import streams
from headwater.bench.harness import BASELINE, GENERATION, MODES, Progress
from headwater.bench.lab import Lab, run_flow
from headwater.bench.meter import Meter, Usage
from headwater.bench.report import COST, MIB, Row, Table
from headwater.bench.suites.chain import flow
from headwater.errors import HeadwaterError
from headwater.saf import storage as formulas
from headwater.saf.keys import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from headwater.flow.nodes import Keep

Results: TypeAlias = Literal["whole", "keys"]

COMPONENTS = (2, 5, 10, 15)
PAYLOADS = (100, 1_024)
EVENTS = 100_000
QUICK: dict[str, Any] = {
    "events": 2_000,
    "payloads": (1_024,),
    "components": (3,),
    "modes": ("none", "eager"),
}
"""Options with which figures say nothing, but everything runs."""
KEY_BYTES = 8 * len(SCHEMA)
"""The paper's key of an event: its time, its number, its stream and how long it took."""

EVERY = "every event, whole"
FIRST = "keys, first input whole"

_STEP = 10_000  # events written at a time
_COLUMNS = {
    "payload": ",",
    "components": ",",
    "stored": "",
    "MiB": ",.2f",
    "formula MiB": ",.2f",
    "saved %": ".1f",
    "provenance MiB": ",.2f",
    "its saved %": ".1f",
    "seconds": ",.2f",
    **COST,
}


@dataclass(frozen=True, slots=True)
class Chain:
    """The experiment's size: events of so many bytes through so many components."""

    events: int
    payload: int
    components: int

    @property
    def every(self) -> int:
        """The paper's formula for every event with its contents, in bytes."""
        return formulas.unoptimized_cost(**self._sizes())

    @property
    def first(self) -> int:
        """The paper's formula for all keys and the contents of the first input, in bytes.

        >>> chain = Chain(100_000, 1_024, 10)
        >>> f"{1 - chain.first / chain.every:.1%}"
        '87.3%'
        """
        return formulas.optimized_cost(**self._sizes())

    def _sizes(self) -> dict[str, int]:
        return {
            "key": KEY_BYTES,
            "content": self.payload,
            "messages": self.events,
            "components": self.components,
        }


def measure(
    spark: SparkSession,
    *,
    events: int = EVENTS,
    payloads: Sequence[int] = PAYLOADS,
    components: Sequence[int] = COMPONENTS,
    modes: Sequence[str] = MODES,
    folder: Path | None = None,
    progress: Progress = lambda doing, done, total: None,
) -> Table:
    """Writes each chain in each way, one after the other, and weighs what is on disk."""
    table = Table(f"Stored for {events:,} events", _COLUMNS)
    ways = [BASELINE, *(mode for mode in modes if mode != BASELINE)]
    total = len(payloads) * len(components) * (2 + len(ways) * len(_KINDS))
    with tempfile.TemporaryDirectory(prefix="headwater-bench-", dir=folder) as name:
        place = Path(name)
        lab = Lab(spark, place, Meter(spark), batches=2)
        for payload in payloads:
            data = streams.events(place / f"events-{payload}", events, payload, lab.files)
            for number in components:
                chain = Chain(events, payload, number)
                for row in _rows(lab, chain, data, ways):
                    progress(str(row["stored"]), len(table.rows), total)
                    table.rows.append(row)
    progress("done", total, total)
    table.notes.append(
        "saved %: against every event whole, as measured; provenance: beyond the same results "
        "without capture and without inputs"
    )
    return table


_KINDS: tuple[tuple[Results, Keep], ...] = (("whole", "none"), ("keys", "none"), ("keys", "all"))


def _rows(lab: Lab, chain: Chain, data: Path, ways: Sequence[str]) -> Iterator[Row]:
    labels = {"payload": chain.payload, "components": chain.components}
    every, cost = _written(lab, chain, contents_of=range(chain.components))
    first, cost_of_first = _written(lab, chain, contents_of=range(1))
    yield _row(labels | {"stored": EVERY}, every, every, cost, formula=chain.every)
    yield _row(labels | {"stored": FIRST}, first, every, cost_of_first, formula=chain.first)
    bare: dict[Results, int] = {}  # stores without capture and without copies of inputs
    for results, keep in _KINDS:
        for mode in ways:
            kept = ", inputs kept" if keep == "all" else ""
            stored = labels | {"stored": f"{mode}, results {results}{kept}"}
            try:
                size, cost = _captured(lab, chain, data, mode, results, keep)
            except HeadwaterError as error:
                if mode == BASELINE:
                    raise
                yield stored | {"stored": f"{stored['stored']}: did not run: {error}"}
                continue
            if mode == BASELINE and keep == "none":
                bare[results] = size
            yield _row(stored, size, every, cost, provenance=size - bare[results])


def _row(
    labels: dict[str, Any],
    size: int,
    every: int,
    cost: Usage,
    *,
    formula: int | None = None,
    provenance: int | None = None,
) -> Row:
    return {
        **labels,
        "bytes": size,
        "MiB": round(size / MIB, 3),
        "formula MiB": None if formula is None else round(formula / MIB, 3),
        "saved %": round(100 * (1 - size / every), 2),
        "provenance MiB": None if provenance is None else round(provenance / MIB, 3),
        "its saved %": None if provenance is None else round(100 * (1 - provenance / every), 2),
        "seconds": round(cost.seconds, 3),
        "CPU s": round(cost.cpu, 2),
        "peak MiB": round(cost.memory / MIB, 1),
    }


def _written(lab: Lab, chain: Chain, contents_of: range) -> tuple[int, Usage]:
    """Bytes of a DuckDB file with every step's events; contents only for some of the steps."""
    with tempfile.TemporaryDirectory(prefix="saf-", dir=lab.folder) as name:
        file = Path(name) / "events.duckdb"
        with lab.meter.measure() as reading, duckdb.connect(str(file)) as database:
            keys = ", ".join(f"{column} BIGINT" for column in SCHEMA.names)
            database.execute(f"CREATE TABLE keys ({keys})")
            database.execute(f"CREATE TABLE events ({keys}, content BLOB)")
            for step in range(chain.components):
                for low in range(0, chain.events, _STEP):
                    ids = np.arange(low, min(low + _STEP, chain.events), dtype=np.int64)
                    rows = _keys(ids, step)
                    if whole := step in contents_of:
                        contents = streams.contents(ids, chain.payload, step)
                        rows = rows.append_column("content", contents)
                    database.register("rows", rows)
                    database.execute(f"INSERT INTO {'events' if whole else 'keys'} FROM rows")
                    database.unregister("rows")
        return file.stat().st_size, reading.usage


def _keys(ids: streams.Ints, step: int) -> pa.Table:
    delay = np.random.default_rng((step, int(ids[0]))).integers(1, 1_000, len(ids))
    columns = [streams.START * 1_000 + ids + step, ids, np.full(len(ids), step), delay]
    return pa.table(columns, schema=SCHEMA)


def _captured(
    lab: Lab, chain: Chain, data: Path, mode: str, results: Results, keep: Keep
) -> tuple[int, Usage]:
    """Bytes of a Headwater store after a run of the chain."""
    with tempfile.TemporaryDirectory(prefix="store-", dir=lab.folder) as name:
        whole = results == "whole"
        made = flow(lab, data, chain.components, keep=keep, contents=whole)
        sample = run_flow(lab.meter, made, mode, Path(name), {})
        files = (file for file in (Path(name) / "store").rglob("*") if file.is_file())
        return sum(file.stat().st_size for file in files), sample.parts[GENERATION]
