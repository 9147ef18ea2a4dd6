"""The provenance query (Figure 4 of the paper): ancestor functions composed, level by level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.saf.ancestors import ancestors_sql
from headwater.saf.keys import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.saf.assertions import Assertions
    from headwater.saf.flow import Flow
    from headwater.saf.operations import Operation

INTERMEDIATE, RESULT = 0, 2
"""The values of `trace_status`."""


@dataclass(frozen=True, slots=True, eq=False)
class Ancestors:
    """The answer to a provenance query."""

    asked: pa.Table
    """The keys that were asked for, each once: the first rows of the trace."""
    trace: pa.Table
    """The trace table: `index`, `assertion_id`, the key, `trace_status` (2: a source event)."""
    edges: pa.Table
    """The provenance graph: a row `index` of the trace was made from the row `ancestor`."""
    sources: pa.Table
    """The source events, each once: `assertion_id`, the key, `event_content` where recorded."""

    def pairs(self) -> pa.Table:
        """The source events of each asked key: `of` (its index in the trace), then the key."""
        columns = ", ".join(f"trace.{name}" for name in COLUMNS)
        with duckdb.connect() as connection:
            connection.register("trace", self.trace)
            connection.register("edges", self.edges)
            return connection.sql(
                "WITH RECURSIVE reached AS ("
                f"SELECT range AS of, range AS index FROM range(1, {self.asked.num_rows} + 1) "
                "UNION SELECT of, ancestor FROM reached JOIN edges USING (index)) "
                f"SELECT DISTINCT of, {columns} FROM reached JOIN trace USING (index) "
                f"WHERE trace_status = {RESULT} ORDER BY ALL"
            ).to_arrow_table()


def step(assertions: Assertions, operation: Operation, keys: pa.Table, last: int) -> pa.Table:
    """One ancestor function for many keys: `child`, `index`, and the input's `line` and key.

    Inputs are numbered from `last` + 1: by the key that they made, left before right, the newest
    first. An input that made several keys of one stream has one number.
    """
    key = ", ".join(COLUMNS)
    return assertions.query(
        f"""
        WITH pairs AS (
            SELECT *, min(child) OVER same AS first_child, min(side) OVER same AS first_side
            FROM ({ancestors_sql(operation)}) WINDOW same AS (PARTITION BY made, line)
        )
        SELECT child, line, {key}, {last} + dense_rank() OVER (
            ORDER BY first_child, first_side, timestamp DESC, seqno DESC, made, line
        ) AS index
        FROM pairs ORDER BY child, index
        """,
        keys=keys,
    )


def by_operation(flow: Flow, keys: pa.Table) -> Iterator[tuple[Operation, pa.Table]]:
    """The keys of each operation, the last operation first, as in the paper's trace."""
    streams = keys["stream_id"]
    for operation in reversed(flow.operations):
        own = keys.filter(pc.is_in(streams, pa.array(operation.outputs, pa.int64())))
        if own.num_rows:
            yield operation, own


def retrieve(
    flow: Flow, assertions: Assertions, asked: pa.Table, until: frozenset[int]
) -> Ancestors:
    """Follow the keys back to the streams `until`; every level is one query per operation."""
    numbers = pa.array(range(1, asked.num_rows + 1), pa.int64())
    level = asked.append_column("child", numbers).append_column("line", assertions.lines(asked))
    levels, edges = [level], list[pa.Table]()
    last = level.num_rows
    stops = pa.array(until, pa.int64())
    while level.num_rows:
        found = []
        open_keys = level.filter(pc.invert(pc.is_in(level["stream_id"], stops)))
        for operation, keys in by_operation(flow, open_keys):
            pairs = step(assertions, operation, keys, last)
            edges.append(pairs.select(["child", "index"]))
            indexes, places = np.unique(pairs["index"].to_numpy(), return_index=True)
            rows = pairs.take(pa.array(places)).drop_columns(["child"])
            found.append(rows.rename_columns({"index": "child"}).select(level.column_names))
            last += len(indexes)
        level = pa.concat_tables(found) if found else level.slice(0, 0)
        levels.append(level)
    trace = _trace(assertions, pa.concat_tables(levels), stops)
    graph = pa.concat_tables(edges) if edges else _NO_EDGES
    return Ancestors(
        asked, trace, graph.rename_columns(["index", "ancestor"]), _sources(assertions, trace)
    )


_NO_EDGES = pa.table({"child": pa.array([], pa.int64()), "index": pa.array([], pa.int64())})


def _trace(assertions: Assertions, rows: pa.Table, stops: pa.Array) -> pa.Table:
    status = pc.if_else(pc.is_in(rows["stream_id"], stops), RESULT, INTERMEDIATE)
    return pa.table(
        {
            "index": rows["child"],
            "assertion_id": assertions.ids(rows["line"]),
            **{name: rows[name] for name in COLUMNS},
            "trace_status": status.cast(pa.int8()),
        }
    )


def _sources(assertions: Assertions, trace: pa.Table) -> pa.Table:
    found = trace.filter(pc.equal(trace["trace_status"], RESULT)).select(COLUMNS)
    found = found.group_by(COLUMNS).aggregate([]).select(COLUMNS)
    found = found.sort_by([(name, "ascending") for name in ("stream_id", "timestamp", "seqno")])
    lines = assertions.lines(found)
    return found.add_column(0, "assertion_id", assertions.ids(lines)).append_column(
        "event_content", assertions.contents(lines)
    )
