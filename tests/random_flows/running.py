"""A random program on Spark: its files, its flow, its runs, and what the store then says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from headwater.flow import nodes
from headwater.testing import Input, Struct, arrival_places, functions, read_checkpoint
from headwater.testing.functions import copies, words
from headwater.testing.join_steps import STATIC_ROWS, STATIC_SCHEMA
from headwater.testing.records import SCHEMA, SourceData
from headwater.testing.strategies import RandomProgram
from tests.random_flows.values import plain
from tests.support import on_lakes
from tests.support.streams import ask_by

ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.timestamp("us", "UTC")),
        ("k", pa.int32()),
        ("v", pa.int32()),
        ("s", pa.string()),
        ("xs", pa.list_(pa.int32())),
    ]
)


Capture = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Actual:
    """A result as the store has it; without capture nothing is known of its provenance."""

    values: tuple[Any, ...]
    event_time: Any
    provenance: frozenset[tuple[str, int]]
    result_id: int = field(default=0, compare=False)


_AT_FIRST = on_lakes()
_on_lake: ContextVar[bool] = ContextVar("on_lake", default=_AT_FIRST)


@contextmanager
def on_lake(*, at: bool = True) -> Iterator[None]:
    """Have the stores of runs be lakes meanwhile, if `at` all."""
    token = _on_lake.set(at)
    try:
        yield
    finally:
        _on_lake.reset(token)


class Feed(Protocol):
    """Where the records of sources are, if not in files."""

    def put(self, data: SourceData, folder: Path) -> None:
        """Put the records of a source there, under the name of a folder that is not made."""

    def source(self, flow: hw.Flow, data: SourceData, folder: Path) -> hw.Frame:
        """A source over them."""

    def recorded(self, flow: hw.Flow, checkpoint: Path, folder: Path) -> Input:
        """What each batch of a run read, without static sources."""

    def positions(self, data: SourceData) -> dict[int, list[int]]:
        """Where each record lies; one that came twice lies in two places."""


_feed: ContextVar[Feed | None] = ContextVar("feed", default=None)


@contextmanager
def fed_by(feed: Feed) -> Iterator[None]:
    """Have the records of sources be elsewhere meanwhile."""
    token = _feed.set(feed)
    try:
        yield
    finally:
        _feed.reset(token)


def feeding() -> Feed | None:
    """Where the records of sources are; None for files."""
    return _feed.get()


def store_of(place: Path) -> str:
    """The address of a run's store."""
    return f"delta:{place / 'store'}" if _on_lake.get() else str(place / "store")


def write_files(data: SourceData, folder: Path) -> None:
    """A file for each micro-batch; Spark takes them in the order of their times."""
    if (feed := feeding()) is not None:
        feed.put(data, folder)
        return
    folder.mkdir(parents=True)
    for number, batch in enumerate(data.batches):
        columns = [list(column) for column in zip(*batch, strict=True)]
        table = pa.table([pa.array(c, t) for c, t in zip(columns, ARROW.types, strict=True)], ARROW)
        path = folder / f"{number:03d}.parquet"
        pq.write_table(table, path)
        os.utime(path, ns=(data.modified(number) * 1_000_000,) * 2)


def build(program: RandomProgram, spark: SparkSession, folder: Path) -> hw.Flow:
    """The flow that a program writes, over files in the folder."""
    flow = hw.Flow("random", spark)
    data = {source.name: source for source in program.data}

    def sources(name: str) -> hw.Frame:
        if (feed := feeding()) is not None:
            return feed.source(flow, data[name], folder / name)
        return flow.source(
            name,
            format="parquet",
            path=str(folder / name),
            schema=SCHEMA,
            event_time="ts",
            watermark=data[name].delay if data[name].declared else None,
            id="id",
            options={"maxFilesPerTrigger": "1"},
        )

    static = spark.createDataFrame(STATIC_ROWS, STATIC_SCHEMA)
    names: dict[str, Any] = {
        "flow": flow,
        "F": F,
        "sources": sources,
        "zones": flow.source("zones", df=static, id="zid"),
        "plain_zones": static,
        "copies": copies,
        "words": words,
        "functions": functions,
    }
    exec(compile(program.text, "<random flow>", "exec"), names)
    return flow


def run(flow: hw.Flow, folder: Path, name: str, capture: Capture | None = None) -> Path:
    """Run a flow to the end of its files; gives the folder of store and checkpoint."""
    place = folder / name
    started = flow.start(
        store=store_of(place),
        checkpoint=str(place / "checkpoint"),
        capture=capture or name,
        available_now=True,
    )
    started.wait()
    return place


def recorded_input(flow: hw.Flow, checkpoint: Path, folder: Path) -> Input:
    """The batches and watermarks of a run, as Spark recorded them."""
    if (feed := feeding()) is not None:
        return replace(feed.recorded(flow, checkpoint, folder), static=_static(flow))
    recorded = read_checkpoint(checkpoint)
    per_source = {
        name: recorded.of(folder / name) for name, node in flow.sources.items() if node.streaming
    }
    batches: list[dict[str, list[tuple[Any, ...]]]] = []
    places: list[dict[str, list[int]]] = []
    for i in range(len(recorded.watermarks)):
        batches.append({name: [] for name in per_source})
        places.append({name: [] for name in per_source})
        for name, files in per_source.items():
            for file in files[i]:
                rows = _rows(file)
                batches[i][name] += rows
                places[i][name] += arrival_places(flow.sources[name], file, rows)
    return Input(batches, recorded.watermarks, _static(flow), places)


def _static(flow: hw.Flow) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of sources and steps that do not stream."""
    return {
        node.step: list(STATIC_ROWS)
        for sink in flow.sinks.values()
        for node in sink.upstream()
        if isinstance(node, nodes.Static) or (isinstance(node, nodes.Source) and not node.streaming)
    }


def _rows(path: Path) -> list[tuple[Any, ...]]:
    return [tuple(map(_value, row.values())) for row in pq.read_table(path).to_pylist()]


def _value(value: Any) -> Any:
    """A value as the interpreter has it."""
    match value:
        case list():
            return tuple(map(_value, value))
        case dict():
            return Struct(tuple((name, _value(part)) for name, part in value.items()))
    return value


def stored(place: Path, sink: str, *, traced: bool, rule: str | None = None) -> list[Actual]:
    """A sink's results with their provenance, found by another rule than it was captured for."""
    store = hw.open(store_of(place))
    if rule is not None:
        ask_by(store, sink, rule)
    table = store.results(sink)
    ids = table.column("result_id").to_pylist()
    assert len(set(ids)) == len(ids), f"sink {sink}: results share a result_id"
    provenance: dict[int, set[tuple[str, int]]] = {result: set() for result in ids}
    if traced and ids:
        edges = store.backward(sink, ids, columns=False)
        for row in edges.to_pylist():
            pair = (row["source"], row["id"])
            assert pair not in provenance[row["result_id"]], f"sink {sink}: {pair} is there twice"
            provenance[row["result_id"]].add(pair)
    return [
        Actual(
            plain(list(row.values())[2:]),
            plain(row["event_time"]),
            frozenset(provenance[id_]),
            id_,
        )
        for id_, row in zip(ids, _dicts(table), strict=True)
    ]


def _dicts(table: pa.Table) -> list[dict[Any, Any]]:
    # By position: a sink may have a column called event_time or result_id itself.
    names = [f"{i}" if i > 1 else n for i, n in enumerate(table.column_names)]
    rows: list[dict[Any, Any]] = table.rename_columns(names).to_pylist()
    return rows
