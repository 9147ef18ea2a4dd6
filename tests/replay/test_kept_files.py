"""Replays over records that the store keeps all of, though they lie in files."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

import headwater as hw
from tests.support.streams import Lab, tell

pytestmark = pytest.mark.spark


def test_intervals_over_kept_files_are_not_taken_for_ids(lab: Lab, flow: hw.Flow) -> None:
    rows = lab.source(flow, "a", "1|0|1|1\n2|1|1|2\n---\n3|20|1|3", keep="all")
    counted = rows.groupBy(F.window("ts", "10 seconds")).agg(F.count("*").alias("n"))
    flow.sink("counted", counted)
    eager = tell(lab.run(flow, "eager"), "counted")
    assert [sets for _, sets in eager] == [{"a": {1, 2}}]
    assert tell(lab.run(flow, "intervals"), "counted") == eager
