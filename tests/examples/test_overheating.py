"""Ariadne's running example: alerts with the readings of both sensors, and in part."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater.examples import overheating


@pytest.mark.spark
def test_alerts_lead_back_to_both_sensors(spark: SparkSession, tmp_path: Path) -> None:
    overheating.generate(tmp_path / "data")
    flow = overheating.flow(tmp_path / "data")
    flow.start(tmp_path / "store", available_now=True).wait()
    with hw.open(tmp_path / "store") as store:
        alerts = store.results("alerts")
        assert alerts.num_rows >= 3
        for alert in alerts.to_pylist():
            behind = store.backward("alerts", alert["result_id"]).to_pylist()
            assert {row["source"] for row in behind} == {"s1", "s2"}
            # Both sources have the same columns: each is under its source's name.
            assert all(row[f"{row['source']}.t"] <= overheating.OUTLIER for row in behind)
            times = [row[f"{row['source']}.ti"] for row in behind]
            # Windows of three readings behind averages that begin within two units of time.
            assert min(times) >= alert["since"]
            assert max(times) <= alert["since"] + 2 + 8
        assert len(overheating.told(store)) == alerts.num_rows


@pytest.mark.spark
def test_in_terms_of_the_merged_stream(spark: SparkSession, tmp_path: Path) -> None:
    overheating.generate(tmp_path / "data")
    flow = overheating.flow(tmp_path / "data")
    flow.start(
        tmp_path / "store", capture={"eager": [overheating.MERGED]}, available_now=True
    ).wait()
    with hw.open(tmp_path / "store") as store:
        for alert in store.results("alerts").to_pylist():
            with pytest.raises(hw.UnsupportedError, match="ask for the ids alone, columns=False"):
                store.backward("alerts", alert["result_id"])
            behind = store.backward("alerts", alert["result_id"], columns=False)
            assert set(behind["source"].to_pylist()) == {overheating.MERGED}
            assert behind.num_rows >= alert["places"]
