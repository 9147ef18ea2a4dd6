"""What the reference interpreter says of a run, in the words of `tests.support.streams`."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

import headwater as hw
from headwater.testing import Input, Result, Struct, interpret, read_checkpoint
from tests.support.streams import Lab, Told, _told


def interpreted(flow: hw.Flow, lab: Lab, run: int) -> dict[str, Told]:
    """Each sink's rows with their sets, over the batches and watermarks of one of a lab's runs."""
    checkpoint = lab.home / f"store-{run}" / "checkpoints" / flow.name
    given = _given(flow, lab, checkpoint)
    return {name: _tell(interpret(sink, given)) for name, sink in flow.sinks.items()}


def _given(flow: hw.Flow, lab: Lab, checkpoint: Path) -> Input:
    if lab.tables is not None:
        return lab.tables.recorded(checkpoint, flow.sources)
    recorded = read_checkpoint(checkpoint)
    files = {name: recorded.of(lab.home / name) for name in flow.sources}
    batches = [
        {name: [row for file in found[i] for row in _rows(file)] for name, found in files.items()}
        for i in range(len(recorded.watermarks))
    ]
    return Input(batches, recorded.watermarks, {})


def _rows(path: Path) -> list[tuple[object, ...]]:
    return [
        tuple(tuple(v) if isinstance(v, list) else v for v in row.values())
        for row in pq.read_table(path).to_pylist()
    ]


def _tell(results: list[Result]) -> Told:
    told: Told = []
    for result in results:
        sets: dict[str, set[int]] = {}
        for source, record in result.provenance:
            sets.setdefault(source, set()).add(record)
        row = tuple(_value(v) for v in result.values)
        told.append((row, sets))
    return sorted(told, key=repr)


def _value(value: object) -> object:
    if isinstance(value, Struct):
        return tuple(_value(part) for _, part in value.fields)
    if isinstance(value, tuple):
        return tuple(_value(part) for part in value)
    return _told(value)
