"""`headwater results`, `backward` and `forward` on the demo's store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples.test_linear_road import alerts, read

COLUMNS = ["result_id", "event_time", "vid", "window", "n", "lo", "hi"]


@pytest.fixture(scope="module")
def everything(headwater, store: Path) -> list[dict]:
    """All results."""
    return headwater("results", store, "stopped", "--json").json


def test_results_are_the_alerts_of_closed_windows(everything: list[dict], demo: Path) -> None:
    found = {(row["vid"], row["window"]["end"]) for row in everything}
    assert len(found) == len(everything)
    last = max(end for _, end in found)
    expected = {(vid, _iso(end)) for vid, end in alerts(read(demo / "data"))}
    assert found == {(vid, end) for vid, end in expected if end <= last}
    assert list(everything[0]) == COLUMNS


def test_the_only_sink_need_not_be_named(headwater, store: Path, everything: list[dict]) -> None:
    assert headwater("results", store, "--json").json == everything


def test_where_since_until_and_limit(headwater, store: Path, everything: list[dict]) -> None:
    times = sorted({row["event_time"] for row in everything})
    since, until = times[len(times) // 4], times[len(times) // 2]
    vid = everything[len(everything) // 3]["vid"]
    span = ["--since", since, "--until", until]

    def ids(rows: list[dict]) -> set[int]:
        return {row["result_id"] for row in rows}

    between = [row for row in everything if since <= row["event_time"] < until]
    assert ids(headwater("results", store, *span, "--json").json) == ids(between)
    of_vehicle = [row for row in everything if row["vid"] == vid]
    found = headwater("results", store, "--where", f"vid = {vid}", "--json").json
    assert ids(found) == ids(of_vehicle)
    assert len(headwater("results", store, "--limit", 3, "--json").json) == 3


def test_a_table_says_how_much_it_shows(headwater, store: Path, everything: list[dict]) -> None:
    shown = headwater("results", store).out
    assert "the first 20 results; --limit 0 shows all" in shown
    assert str(everything[0]["result_id"]) in shown
    assert f"{len(everything)} results" in headwater("results", store, "--limit", 0).out


def test_backward_gives_the_four_reports(headwater, store: Path, demo: Path) -> None:
    expected = {
        (vid, _iso(end)): reports for (vid, end), reports in alerts(read(demo / "data")).items()
    }
    for row in headwater("results", store, "--limit", 5, "--json").json:
        records = headwater("backward", store, "stopped", row["result_id"], "--json").json
        assert {record["id"] for record in records} == expected[row["vid"], row["window"]["end"]]
        assert list(records[0])[:3] == ["source", "id", "event_time"]
        assert {record["vid"] for record in records} == {row["vid"]}


def test_backward_and_forward_agree(headwater, store: Path, everything: list[dict]) -> None:
    ids = [row["result_id"] for row in everything[:40]]
    pairs = {
        (row["result_id"], row["id"])
        for row in headwater("backward", store, "stopped", *ids, "--json").json
    }
    assert len(pairs) == 160
    records = sorted({record for _, record in pairs})
    reached = headwater("forward", store, "reports", *records, "--json").json
    assert pairs <= {(row["result_id"], row["id"]) for row in reached}
    assert list(reached[0])[:5] == ["id", "sink", "result_id", "event_time", "final"]


def test_tables_of_backward_and_forward(headwater, store: Path, everything: list[dict]) -> None:
    result = everything[0]["result_id"]
    shown = headwater("backward", store, "stopped", result).out
    assert "4 records" in shown
    record = headwater("backward", store, "stopped", result, "--json").json[0]["id"]
    assert str(result) in headwater("forward", store, "reports", record).out


def test_a_record_without_result(headwater, store: Path, demo: Path) -> None:
    reports = read(demo / "data")
    driving = int(reports[reports.speed > 0].tid.iloc[0])
    (row,) = headwater("forward", store, "reports", driving, "--json").json
    assert row["result_id"] is None
    said = headwater("forward", store, "reports", driving).out
    assert "headwater why-not" in said
    assert "yes" not in said


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["results", "{}", "stoped"], "stopped"),
        (["results", "{}", "--where", "vid ="], "vid ="),
        (["backward", "{}", "stopped", "12345"], "12345"),
        (["backward", "{}", "nowhere", "1"], "nowhere"),
        (["forward", "{}", "reports", "987654321"], "987654321"),
        (["forward", "{}", "rapports", "1"], "rapports"),
    ],
)
def test_unknown_names_and_ids(headwater, store: Path, args: list[str], says: str) -> None:
    failed = headwater(*(arg.format(store) for arg in args))
    assert failed.code == 1
    assert failed.err.startswith("headwater: ")
    assert failed.err.count("\n") == 1
    assert says in failed.err


def _iso(seconds: int) -> str:
    return f"2025-01-01T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}Z"
