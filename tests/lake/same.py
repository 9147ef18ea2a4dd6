"""Whether Spark's answers about a lake are those of DuckDB."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import headwater as hw


def rows(found: DataFrame | pa.Table) -> tuple[list[str], list[str]]:
    """An answer's columns, and its rows in an order of their own."""
    table = found.toArrow() if isinstance(found, DataFrame) else found
    return table.column_names, sorted(map(repr, table.to_pylist()))


def differences(store: hw.Store, spark: SparkSession) -> list[str]:
    """What Spark answers otherwise than DuckDB, of every sink and source of a store."""
    frames, wrong = store.frames(spark), []
    for row in store.sinks().to_pylist():
        name = f"{row['flow']}/{row['name']}"
        found = store.results(name)
        if rows(frames.results(name)) != rows(found):
            wrong.append(f"results of {name}")
        ids = found["result_id"].to_pylist()
        some = ids[::2]
        for asked, expected in (
            (None, store.backward(name)),
            (some, store.backward(name, some)),
        ):
            if rows(frames.backward(name, asked)) != rows(expected):
                wrong.append(f"backward of {name}, {'all' if asked is None else 'some'}")
        pairs = frames.edges(name).select("result_id", "id").toArrow()
        known = store.backward(name, columns=False).select(["result_id", "id"])
        if rows(pairs) != rows(known):
            wrong.append(f"edges of {name}")
    for row in store.sources().to_pylist():
        name = f"{row['flow']}/{row['name']}"
        reached = frames.forward(name)
        ids = sorted({one["id"] for one in reached.select("id").collect()})
        if ids:
            expected = store.forward(name, ids).drop_columns(["final"])
            if rows(reached) != rows(expected):
                wrong.append(f"forward of {name}")
    return wrong
