"""`headwater mark`, `marks`, `marked`, `unmark` and `erase`."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from headwater.cli import app
from headwater.store import EmbeddedWriter
from tests.store.small import batch, flow, reports, stopped


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """1 and 2 made 7, 3 made 8; the speed is 10 × id."""
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow())
        made = stopped((7, 70, "a", 2, [1, 2]), (8, 80, "b", 1, [3]))
        writer.commit(batch(0, made, reports((1, 1, 10), (2, 2, 20), (3, 3, 30))))
    return tmp_path


def test_mark_and_what_it_touches(headwater, place: Path) -> None:
    done = headwater("mark", place, "reports", "--where", "speed < 15", "--reason", "x", "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json == {
        "mark": 1,
        "source": "reports",
        "records": 1,
        "results": [{"sink": "stopped", "result_id": 7, "event_time": "2024-05-01T00:01:10Z"}],
    }
    shown = headwater("mark", place, "reports", "--id", 3, "--id", 99)
    assert shown.out.startswith("mark 2 on reports: 2 records\n")
    assert "1 result\n" in shown.out
    found = headwater("marked", place, "--json").json
    assert [(row["result_id"], row["mark"], row["reason"]) for row in found] == [
        (7, 1, "x"),
        (8, 2, ""),
    ]
    assert "2 results" in headwater("marked", place, "stopped").out
    listed = headwater("marks", place, "--json").json
    assert [(row["mark"], row["predicate"], row["records"]) for row in listed] == [
        (1, "speed < 15", 1),
        (2, None, 2),
    ]
    assert "2 marks" in headwater("marks", place).out


def test_watch_only_what_is_marked(headwater, place: Path) -> None:
    headwater("mark", place, "reports", "--id", 3)
    seen = headwater("watch", place, "stopped", "--marked", "--after", 0, "--timeout", 0)
    assert seen.out.count("\n") == 1
    assert '"result_id": 8' in seen.out


def test_unmark(headwater, place: Path) -> None:
    headwater("mark", place, "reports", "--id", 1)
    assert headwater("unmark", place, 1, "--json").json == {"unmarked": 1}
    again = headwater("unmark", place, 1)
    assert (again.code, again.err) == (1, "headwater: no mark 1: the store has no mark yet\n")


def test_erase(headwater, place: Path) -> None:
    done = headwater("erase", place, "reports", "--where", "speed < 25", "--yes", "--json")
    assert (done.code, done.err) == (0, "")
    assert {key: done.json[key] for key in ("source", "records", "copies")} == {
        "source": "reports",
        "records": 2,
        "copies": 2,
    }
    assert [row["result_id"] for row in done.json["results"]] == [7]
    found = headwater("backward", place, "stopped", 7, "--json").json
    assert [(row["id"], row["speed"]) for row in found] == [(1, None), (2, None)]
    shown = headwater("erase", place, "reports", "--id", 3, "--yes").out
    assert shown.startswith("erased 1 record of reports, 1 copy removed\n")


def test_nobody_is_asked_without_a_terminal(headwater, place: Path) -> None:
    refused = headwater("erase", place, "reports", "--id", 1)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == (
        "headwater: erasing can't be undone: say --yes where nobody can be asked\n"
    )
    assert headwater("backward", place, "stopped", 7, "--json").json[0]["speed"] == 10


@pytest.mark.parametrize(("answer", "left"), [("n", 10), ("", 10), ("y", None)])
def test_it_asks_before_it_erases(
    headwater, place: Path, monkeypatch: pytest.MonkeyPatch, answer: str, left: int | None
) -> None:
    monkeypatch.setattr("headwater.cli.marks._is_terminal", lambda: True)
    args = ["erase", str(place), "reports", "--id", "1", "--json"]
    done = CliRunner().invoke(app, args, input=f"{answer}\n")
    assert "Erase 1 record of source reports from the store, for good?" in done.stderr
    assert "(Results that hold one, and stay: 1)" in done.stderr
    assert done.exit_code == (0 if answer == "y" else 1)
    assert headwater("backward", place, "stopped", 7, "--json").json[0]["speed"] == left


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["mark", "{}", "reports", "--where", "speed >"], "is not an SQL predicate"),
        (["mark", "{}", "reports", "--where", "sped > 1"], "sped"),
        (["mark", "{}", "rapports", "--id", "1"], "did you mean 'reports'"),
        (["marked", "{}", "stoped"], "stoped"),
        (["unmark", "{}", "5"], "no mark 5"),
        (["erase", "{}", "reports", "--where", "sped > 1", "--yes"], "sped"),
        (["erase", "{}", "reports", "--mark", "5", "--yes"], "no mark on source 'reports' 5"),
    ],
)
def test_errors_are_one_line(headwater, place: Path, args: list[str], says: str) -> None:
    failed = headwater(*(arg.format(place) for arg in args))
    assert (failed.code, failed.out) == (1, "")
    assert failed.err.startswith("headwater: ")
    assert failed.err.count("\n") == 1
    assert says in failed.err
