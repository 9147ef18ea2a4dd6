"""The live graphs of the example flows, as the checker finds them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater.examples import NAMES, load
from headwater.testing.graph_checking import check_graph
from tests.random_flows.running import recorded_input

pytestmark = pytest.mark.spark

SIZES = {"linear_road": 2_000, "smart_grid": 3_000, "object_annotation": 500}
FILES = 5


@pytest.mark.parametrize("name", NAMES)
def test_the_graph_of_an_example(name: str, spark: SparkSession, tmp_path: Path) -> None:
    example = load(name)
    records = tmp_path / example.SOURCE
    example.generate(records, SIZES.get(name, 1_500), files=FILES)
    flow = hw.Flow(name, spark)
    example.sinks(flow, records, options={"maxFilesPerTrigger": "1"})
    run = flow.start(
        store=str(tmp_path / "store"),
        checkpoint=str(tmp_path / "checkpoint"),
        capture="eager",
        live=True,
        available_now=True,
    )
    run.wait()
    run.finish()
    store = hw.open(str(tmp_path / "store"))
    given = recorded_input(flow, tmp_path / "checkpoint", tmp_path)
    checked = check_graph(store.follow(wait=False), list(flow.sinks.values()), given, finished=True)
    assert not checked.violations, "\n".join(checked.violations[:10])
    assert checked.labels == checked.records > 10
    for sink in flow.sinks:
        assert store.results(sink).num_rows, sink
