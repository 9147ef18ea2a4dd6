"""Graphs by hand, for tests of the checker without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from headwater.flow import nodes
from headwater.testing import Input, interpret
from tests.testing.tables import ZERO, parse

TIME = pa.timestamp("us", "UTC")
DELIVERED = [("delivered", TIME), ("batch", pa.int64())]
NAMED = [("kind", pa.string()), ("name", pa.string()), ("id", pa.int64())]
VERTICES = pa.schema([*NAMED, ("event_time", TIME), *DELIVERED])
ENDS = [("source", pa.string()), ("source_id", pa.int64())]
EDGES = pa.schema([*ENDS, ("sink", pa.string()), ("result_id", pa.int64()), *DELIVERED])
LABELS = pa.schema([*NAMED, *DELIVERED])


@dataclass
class Change:
    """What a batch adds to a graph."""

    batch: int
    watermark: datetime | None
    vertices: pa.Table
    edges: pa.Table
    labels: pa.Table


def at(seconds: float) -> datetime:
    """A moment in the tables' own seconds."""
    return ZERO + timedelta(seconds=seconds)


def given(text: str, watermarks: Sequence[int], **static: Any) -> Input:
    """The batches of a table, those beyond it without data; watermarks in seconds, 0 is none."""
    batches = parse(text)
    batches += [{} for _ in range(len(watermarks) - len(batches))]
    start = int(ZERO.timestamp())
    return Input(batches, [(start + w) * 1000 if w else 0 for w in watermarks], static)


def sink(name: str, above: nodes.Node) -> nodes.Sink:
    """A sink."""
    return nodes.Sink(step=name, inputs=(above,))


def changes(text: str, watermarks: Sequence[int]) -> list[Change]:
    """Changes from lines: `batch vertex name:id time`, `result`, `edge from to`, `label name:id`.

    A line for a result is its vertex and its label; `vertex-only` and `label-of` are those alone.
    """
    rows: dict[int, dict[str, list[dict[str, Any]]]] = {
        n: {"vertices": [], "edges": [], "labels": []} for n in range(len(watermarks))
    }
    for line in filter(str.strip, text.splitlines()):
        number, what, *parts = line.split()
        batch = int(number)
        stamp = {"delivered": at(w) if (w := watermarks[batch]) else None, "batch": batch}
        name, id_ = parts[0].split(":")
        if what == "edge":
            to, result = parts[1].split(":")
            edge = {"source": name, "source_id": int(id_), "sink": to, "result_id": int(result)}
            rows[batch]["edges"].append({**edge, **stamp})
            continue
        of_source = what in ("vertex", "label")
        row = {"kind": "source" if of_source else "result", "name": name, "id": int(id_), **stamp}
        if what in ("vertex", "result", "vertex-only"):
            rows[batch]["vertices"].append({**row, "event_time": at(float(parts[1]))})
        if what in ("label", "result", "label-of"):
            rows[batch]["labels"].append(row)
    return [
        Change(
            batch,
            at(w) if w else None,
            pa.Table.from_pylist(rows[batch]["vertices"], VERTICES),
            pa.Table.from_pylist(rows[batch]["edges"], EDGES),
            pa.Table.from_pylist(rows[batch]["labels"], LABELS),
        )
        for batch, w in enumerate(watermarks)
    ]


def told(
    sinks: Sequence[nodes.Sink],
    input_: Input,
    watermarks: Sequence[int],
    labels: Mapping[str, int],
) -> list[Change]:
    """The graph that the interpreter's results make, with labels (`a:1`) in the given batches."""
    lines = []
    times: dict[tuple[str, int], Any] = {}
    for batch in (input_.static, *input_.batches):
        for name, rows in batch.items():
            times |= {(name, row[0]): row[1] for row in rows}
    known: set[tuple[str, int]] = set()
    made = sorted(
        ((result, one) for one in sinks for result in interpret(one, input_)),
        key=lambda pair: pair[0].batch,
    )
    for number, (result, one) in enumerate(made):
        time = (result.event_time - ZERO).total_seconds() if result.event_time else 0
        lines.append(f"{result.batch} result {one.name}:{number} {time}")
        for record in sorted(result.provenance):
            name = f"{record[0]}:{record[1]}"
            if record not in known:
                known.add(record)
                since = (times[record] - ZERO).total_seconds()
                lines.append(f"{result.batch} vertex {name} {since}")
            lines.append(f"{result.batch} edge {name} {one.name}:{number}")
    lines += [f"{batch} label {name}" for name, batch in labels.items()]
    return changes("\n".join(lines), watermarks)
