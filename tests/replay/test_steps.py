"""What is told of a replay: the steps, what each reads, and errors in one line."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from headwater.errors import StoreError
from headwater.replay.engine import explained
from tests.support.streams import Lab

A = """
    1 |  1 | 1 | 5
    2 |  2 | 2 | 6
    --
    3 | 60 | 1 | 9
"""


@pytest.mark.spark
def test_steps_name_the_steps_that_they_read(interpreted: SparkSession, lab: Lab) -> None:
    """Those that are not shown, other names of a step, are passed by."""
    flow = hw.Flow("inputs", interpreted)
    a = lab.source(flow, "a", A)
    b = lab.source(flow, "b", A)
    left = a.filter("v > 4").alias("l")
    right = b.filter("v > 5").alias("m").alias("r")
    same = F.expr("l.k = r.k and l.ts >= r.ts - interval 5 seconds and l.ts <= r.ts")
    both = left.join(right, same).select(F.col("l.k").alias("k"), F.col("r.v").alias("v"))
    flow.sink("out", both)
    store = lab.run(flow, "eager")
    result = next(row for row in store.results("out").to_pylist() if row["k"] == 2)
    made = store.replay("out", result["result_id"], steps=True).steps
    read = {step.step: set(step.inputs) for step in made}
    kinds = {step.step: step.kind for step in made}
    assert all(inputs <= read.keys() for inputs in read.values()), "all are among those shown"
    assert read["a"] == read["b"] == set()
    filters = {name for name, kind in kinds.items() if kind == "filter"}
    assert {frozenset(read[name]) for name in filters} == {frozenset({"a"}), frozenset({"b"})}
    (join,) = [name for name, kind in kinds.items() if kind == "join"]
    assert read[join] == filters
    assert [name for name in read if join in read[name]] == [made[-1].step]
    (pairs,) = [step.rows for step in made if step.step == join]
    assert pairs.column_names == [
        "event_time",
        "id",
        "ts",
        "k",
        "v",
        "id (2)",
        "ts (2)",
        "k (2)",
        "v (2)",
    ]
    (row,) = pairs.to_pylist()
    assert (row["id"], row["id (2)"], row["v"], row["v (2)"]) == (2, 2, 6, 6)
    rows = store.backward("out", result["result_id"], to=join)
    assert (rows.num_rows, rows["id (2)"].to_pylist()) == (1, [2])
    order = [step.step for step in made]
    assert all(order.index(above) < order.index(name) for name in read for above in read[name])


@pytest.mark.parametrize("error", [PySparkException("it broke"), Py4JError("it broke")])
def test_what_spark_says_is_one_error(error: Exception) -> None:
    sink: Any = SimpleNamespace(name="out")
    with pytest.raises(StoreError, match="replaying sink 'out' failed: it broke"), explained(sink):
        raise error
