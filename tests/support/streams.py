"""Small streams from text tables, run through a flow, told as rows beside their sets of ids.

Times are seconds after `T0`, in the tables and in what is told.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, StructType, TimestampType

import headwater as hw
from headwater.capture.choosing import refusal
from headwater.testing import Input
from tests.support import full, on_lakes

T0 = datetime(2025, 1, 1, tzinfo=UTC)
SCHEMA = "id bigint, ts timestamp, k int, v int"

Row = tuple[Any, ...]
Told = list[tuple[Row, dict[str, set[int]]]]


def parse(text: str, schema: StructType) -> list[list[list[Any]]]:
    """The batches of a text table: cells between bars, batches between lines of dashes."""
    batches: list[list[list[Any]]] = [[]]
    for line in text.strip().splitlines():
        if set(line.strip()) == {"-"}:
            batches.append([])
            continue
        cells = [cell.strip() for cell in line.split("|")]
        batches[-1].append([_value(c, f.dataType) for c, f in zip(cells, schema, strict=True)])
    return batches


def _value(cell: str, data_type: Any) -> Any:
    if cell == "-":
        return None
    if isinstance(data_type, TimestampType):
        return T0 + timedelta(seconds=float(cell))
    if isinstance(data_type, ArrayType):
        return [int(part) for part in cell.split()]
    return cell if data_type.simpleString() == "string" else int(cell)


def _parsed(schema: str) -> StructType:
    parsed = StructType.fromDDL(schema)
    assert isinstance(parsed, StructType)
    return parsed


def write(folder: Path, schema: str, text: str) -> None:
    """One Parquet file for each batch, in the order in which Spark will read them."""
    folder.mkdir(parents=True, exist_ok=True)
    parsed = _parsed(schema)
    already = len(list(folder.glob("*.parquet")))
    for number, rows in enumerate(parse(text, parsed), start=already):
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(parsed.fields)
        arrow = to_arrow_schema(parsed, timezone="UTC", prefers_large_types=False)
        arrays = [pa.array(c, f.type) for c, f in zip(columns, arrow, strict=True)]
        path = folder / f"{number:04}.parquet"
        pq.write_table(pa.table(arrays, schema=arrow), path)
        os.utime(path, (1_700_000_000 + number,) * 2)


class Tables(Protocol):
    """Where text tables are, if not in files."""

    @property
    def are_used(self) -> bool:
        """Whether there is any."""

    def put(self, name: str, schema: StructType, text: str) -> dict[str, Any]:
        """Put a table there; the parameters of a source that reads it, a batch for each of its."""

    def recorded(self, checkpoint: Path, names: Iterable[str]) -> Input:
        """What each batch of a run read of some tables."""


class Lab:
    """A place to write streams, run flows over them and tell what came out."""

    def __init__(self, home: Path, tables: Tables | None = None) -> None:
        self.home = home
        self.tables = tables
        self.runs = 0

    def source(
        self, flow: hw.Flow, name: str, text: str, schema: str = SCHEMA, **more: Any
    ) -> hw.Frame:
        """A source over a text table, a micro-batch for each of its batches."""
        settings: dict[str, Any] = {
            "schema": schema,
            "event_time": "ts",
            "watermark": "0 seconds",
            "id": "id",
            **self._put(name, schema, text, stream=more.get("stream", True)),
        }
        return flow.source(name, **{**settings, **more})

    def _put(self, name: str, schema: str, text: str, *, stream: bool) -> dict[str, Any]:
        """Put a text table where its source is to read it, and say how."""
        if self.tables is not None:
            if not stream:
                pytest.skip("a topic is always read as a stream")
            return self.tables.put(name, _parsed(schema), text)
        write(self.home / name, schema, text)
        return {
            "format": "parquet",
            "path": str(self.home / name),
            "options": {"maxFilesPerTrigger": 1},
        }

    def taken(self, mode: str) -> str:
        """What `auto` takes where it takes a mode over files: a topic may not last for a replay."""
        return mode if self.tables is None else "eager"

    def run(self, flow: hw.Flow, capture: str | dict[str, list[str]], **more: Any) -> hw.Store:
        """The store after a whole run."""
        if self.tables is not None and not self.tables.are_used:
            pytest.skip("the flow has no source over a text table that could be a topic")
        self.runs += 1
        path = self._store(self.runs)
        flow.start(store=path, capture=capture, available_now=True, **more).wait()
        return hw.open(path)

    def store(self, run: int) -> hw.Store:
        """The store of an earlier run; the first is 1."""
        return hw.open(self._store(run))

    def _store(self, run: int) -> str:
        return f"{'delta:' if on_lakes() else ''}{self.home / f'store-{run}'}"

    def tell(self, flow: hw.Flow) -> dict[str, Told]:
        """Each sink's rows with their sets, after checking that the lazy modes tell the same.

        Whether capture changes a row is asked in full runs; random flows ask it in every run.
        """
        eager = self.run(flow, "eager")
        told = {sink: tell(eager, sink) for sink in flow.sinks}
        plain = self.run(flow, "none") if full() else None
        for sink in flow.sinks if plain else ():
            without = sorted(rows_of(plain, sink), key=repr)
            assert sorted((row for row, _ in told[sink]), key=repr) == without, sink
        self._lazily(flow, told)
        return told

    def _lazily(self, flow: hw.Flow, told: dict[str, Told]) -> None:
        """Check that the lazy modes tell the same where they can."""
        able = {
            mode: [n for n, sink in flow.sinks.items() if refusal(flow, sink, mode) is None]
            for mode in ("intervals", "ancestors")
        }
        if not able["intervals"]:
            return
        store = self.run(flow, {"intervals": able["intervals"]})
        for name in able["intervals"]:
            assert tell(store, name) == told[name], f"{name} as intervals"
        # What is carried for intervals is more than ancestor functions need: ask them as well.
        for name in able["ancestors"]:
            ask_by(store, name, "ancestors")
            assert tell(store, name) == told[name], f"{name} as ancestors"


def ask_by(store: hw.Store, sink: str, rule: str) -> None:
    """Have a sink's provenance found as if it had been captured in another mode."""
    catalog = store._catalog
    store._edges.catalog = store._catalog = replace(
        catalog,
        sinks=tuple(
            replace(s, definition={**s.definition, "capture": rule}) if s.name == sink else s
            for s in catalog.sinks
        ),
    )


def tell(store: hw.Store, sink: str) -> Told:
    """A sink's rows, sorted, each with its sets of source ids."""
    results = store.results(sink)
    ids = results["result_id"].to_pylist()
    sets: dict[int, dict[str, set[int]]] = {i: {} for i in ids}
    assert len(sets) == len(ids), "result ids are unique"
    if ids:
        for edge in store.backward(sink, ids, columns=False).to_pylist():
            sets[edge["result_id"]].setdefault(edge["source"], set()).add(edge["id"])
    rows = _rows(results)
    return sorted(((row, sets[i]) for row, i in zip(rows, ids, strict=True)), key=repr)


def rows_of(store: hw.Store, sink: str) -> list[Row]:
    """A sink's own columns."""
    return _rows(store.results(sink))


def times_of(store: hw.Store, sink: str) -> list[float | None]:
    """The event times of a sink's results, in order."""
    return sorted(map(_told, store.results(sink)["event_time"].to_pylist()))


def _rows(results: pa.Table) -> list[Row]:
    own = results.drop_columns(["result_id", "event_time"])
    return [tuple(_told(v) for v in row.values()) for row in own.to_pylist()]


def _told(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value - T0).total_seconds()
    if isinstance(value, dict):
        return tuple(_told(v) for v in value.values())
    if isinstance(value, list):
        return tuple(_told(v) for v in value)
    return value


FlowMaker = Callable[[], hw.Flow]
