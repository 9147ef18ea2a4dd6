"""One result computed again, from its provenance alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from headwater.columns import quoted, with_ids
from headwater.flow import nodes
from headwater.lowering.eager import as_array, origin
from headwater.lowering.outputs import ID
from headwater.names import PREFIX, TIME
from headwater.replay.engine import explained
from headwater.replay.fates import numbered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from headwater.replay.engine import Engine, Ids, Replay
    from headwater.store.catalog import Sink

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Difference:
    """A column in which the result that was stored and the one computed again differ."""

    stored: Any
    replayed: Any


@dataclass(frozen=True, slots=True)
class Step:
    """The rows of one step on the way to a result."""

    step: str
    kind: str
    describe: str
    rows: pa.Table
    inputs: tuple[str, ...] = ()
    """The steps whose rows it was made from."""


@dataclass(frozen=True, slots=True)
class ReplayedResult:
    """A result computed again from its source records.

    `row` is what came out (None if nothing did), `matches` whether it is the stored result,
    `differences` the columns in which it is not; `sources` are the records; `steps` has, where
    asked for, the rows of every step on the way.
    """

    row: dict[str, Any] | None
    matches: bool
    sources: pa.Table
    differences: dict[str, Difference] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()


def replay_result(
    engine: Engine, sink: Sink, result_id: int, sources: pa.Table, *, steps: bool
) -> ReplayedResult:
    """Run the flow over a result's records alone, and compare what comes out."""
    asked = engine.asked(sink, [result_id])
    alone = {
        name: sources.filter(pc.equal(sources["source"], name))["id"].to_numpy()
        for name in pc.unique(sources["source"]).to_pylist()
    }
    replay = engine.replay(sink, asked, alone=alone)
    with explained(sink):
        rows = replay.rows
        own = [quoted(name) for name in rows.columns]
        found = with_ids(rows.df, ID, asked["base"].to_numpy()).select(*own).toArrow().to_pylist()
    stored = {
        name.removeprefix("own "): asked[name][0].as_py()
        for name in asked.column_names
        if name.startswith("own ")
    }
    row = found[0] if found else None
    differences = {} if row is None else _differences(stored, row)
    made = tuple(_steps(replay, sink, asked)) if steps else ()
    return ReplayedResult(row, bool(found) and not differences, sources, differences, made)


def _differences(stored: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Difference]:
    return {
        name: Difference(value, row.get(name))
        for name, value in stored.items()
        if not _same(value, row.get(name))
    }


def _same(a: Any, b: Any) -> bool:
    match a, b:
        case dict(), dict():
            return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
        case list(), list():
            return len(a) == len(b) and all(map(_same, a, b))
        case float(), float():
            return math.isclose(a, b, rel_tol=_TOLERANCE) or (math.isnan(a) and math.isnan(b))
    return bool(a == b)


def _steps(replay: Replay, sink: Sink, asked: pa.Table) -> list[Step]:
    """The rows of every step that went into the result, and no others of the same replay."""
    made = []
    for node in replay.node.upstream():
        if isinstance(node, nodes.Static | nodes.Alias | nodes.Sink):
            continue
        with explained(sink):
            rows = replay.to(node.step).rows
            keys: Ids = np.empty(0, np.int64)
            if node.step in rows.origins:
                sets = with_ids(rows.df, ID, asked["base"].to_numpy())
                found = sets.select(as_array(rows, node.step)).toArrow()[origin(node.step)]
                keys = found.combine_chunks().flatten().to_numpy()
            df = numbered(replay.rows_of(node.step, keys))
            own = [quoted(c) for c in df.columns if not c.startswith(PREFIX)]
            shown = df.select(F.col(TIME).alias("event_time"), *own)
            inputs = tuple(_above(node))
            made.append(Step(node.step, node.kind, node.describe(), shown.toArrow(), inputs))
    return made


def _above(node: nodes.Node) -> Iterator[str]:
    """The steps that a step reads, those that only have another name passed by."""
    for above in node.inputs:
        if isinstance(above, nodes.Alias):
            yield from _above(above)
        elif not isinstance(above, nodes.Static):
            yield above.step
