"""Sinks whose sets are found by a replay, and records that are read again from their source."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from headwater.query import Store
from tests.export.reading import derivations, document, entities, exported
from tests.support.streams import Lab

pytestmark = pytest.mark.spark

TABLE = """
    1 |  1 | 1 | 5
    2 |  2 | 1 | 6
    3 | 11 | 2 | 7
    --
    4 | 12 | 1 | 8
    6 | 15 | 2 | 1
    --
    8 | 60 | 1 | 3
"""


def test_a_replayed_sink_is_exported_like_an_eager_one(spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("windows", spark)
    rows = lab.source(flow, "rows", TABLE)
    counted = rows.groupBy("k", F.window("ts", "20 seconds", "10 seconds")).agg(
        F.count("*").alias("n")
    )
    flow.sink("out", counted)
    eager, lazy = lab.run(flow, "eager"), lab.run(flow, "ancestors")
    assert lazy.replays
    assert told(lazy) == told(eager)
    pairs, named = told(eager)
    assert len(pairs) == eager.backward("out").num_rows > 5
    assert named["hw:windows/rows/3"]["column:v"] == 7, "the source's file is read again"


def told(store: Store) -> tuple[set[tuple[str, str]], dict[str, object]]:
    read = document(exported(store))
    return {(effect, cause) for effect, cause, _ in derivations(read)}, dict(entities(read))
