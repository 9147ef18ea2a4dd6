"""`headwater why-not`: what became of a report, as a table and as JSON."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def moving(demo: Path) -> int:
    """A report of a vehicle that moves."""
    reports = pq.read_table(demo / "data").to_pylist()
    return int(next(report["tid"] for report in reports if report["speed"] > 0))


def test_a_report_that_a_filter_removed(headwater, store: Path, moving: int) -> None:
    done = headwater("why-not", store, "reports", moving, "--sink", "stopped", "--json")
    assert done.code == 0
    (end,) = done.json
    assert (end["sink"], end["kind"], end["step"]) == ("stopped", "filtered", "filter-1")
    assert end["detail"].startswith("filter-1 removed it: not (")
    assert "speed = 0" in end["detail"]
    assert end["values"]["tid"] == moving
    shown = headwater("why-not", store, "reports", moving).out
    assert end["detail"] in shown


def test_a_report_that_reached_alerts(headwater, store: Path) -> None:
    alert = headwater("results", store, "--limit", 1, "--json").json[0]["result_id"]
    report = headwater("backward", store, "stopped", alert, "--json").json[0]["id"]
    ends = headwater("why-not", store, "reports", report, "--json").json
    assert alert in [end["result_id"] for end in ends]


def test_what_is_unknown_is_one_line(headwater, store: Path) -> None:
    done = headwater("why-not", store, "reports", -5)
    assert (done.code, done.out) == (1, "")
    assert done.err == "headwater: source 'reports' has no record with the id -5\n"
    assert headwater("why-not", store, "reports", 1, "--sink", "nosuch").code == 1
