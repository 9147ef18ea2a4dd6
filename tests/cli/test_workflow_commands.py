"""`headwater jobs`, `depends`, `paths`, and `--entity` of backward and forward."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.testing.prov_graphs import Element
from tests.reduce.lab import lab, tell


def told(function: str, used: str, made: str) -> list[Element]:
    name = f"{function} of {used}"
    return [
        Element("used", name, used, function, name, "n1", 1),
        Element("wasGeneratedBy", made, name, function, name, "n1", 2),
    ]


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two jobs: `count` is finished with all kept, `report` is open."""
    path = tmp_path_factory.mktemp("workflow") / "store"
    count = [
        *told("map", "tweet-1", "pair-1"),
        *told("map", "tweet-2", "pair-2"),
        *told("reduce", "pair-1", "count-1"),
        *told("reduce", "pair-2", "count-1"),
        *told("reduce", "lost", "count-2"),
    ]
    with lab(path) as here:
        first = here.job("count", keep="full", functions=True)
        tell(first, 0, [(count, True)])
        first.finish()
        tell(here.job("report"), 0, [(told("join", "count-1", "report"), True)])
    return path


def test_backward_and_forward_of_an_entity(headwater, jobs: Path) -> None:
    rows = headwater("backward", jobs, "--entity", "report", "--json").json
    assert [row["id"] for row in rows] == ["tweet-1", "tweet-2"]
    assert list(rows[0]) == ["id", "kind", "job", "event_time", "functions"]
    assert (rows[0]["kind"], rows[0]["job"]) == ("entity", "count")
    assert sorted(rows[0]["functions"]) == ["map", "reduce"]
    rows = headwater("backward", jobs, "--entity", "report", "--steps", "--json").json
    assert [row["id"] for row in rows] == ["count-1", "tweet-1", "tweet-2"]
    rows = headwater("forward", jobs, "--entity", "tweet-2", "--json").json
    assert [row["id"] for row in rows] == ["report"]
    shown = headwater("forward", jobs, "--entity", "tweet-2").out
    assert "report" in shown
    assert "1 entity" in shown


def test_depends(headwater, jobs: Path) -> None:
    assert headwater("depends", jobs, "report", "tweet-1").out == "yes\n"
    assert headwater("depends", jobs, "report", "lost").out == "no\n"
    answer = headwater("depends", jobs, "report", "count-1", "--json")
    assert answer.json == {"entity": "report", "on": "count-1", "depends": True}
    assert answer.code == 0


def test_jobs(headwater, jobs: Path) -> None:
    first, second = headwater("jobs", jobs, "--json").json
    assert (first["job"], first["state"], first["elements"]) == ("count", "finished", 10)
    assert (first["dependencies"], first["inputs"], first["outputs"]) == (3, 3, 2)
    assert first["rejected"] == {}
    assert (second["job"], second["state"]) == ("report", "open")
    assert "2 jobs" in headwater("jobs", jobs).out


def test_diagnosis(headwater, jobs: Path) -> None:
    found = headwater("jobs", jobs, "--diagnose", "count", "--json").json
    assert found["never_generated"] == [{"entity": "lost", "function": "reduce"}]
    assert found["never_used"] == found["slow_nodes"] == []
    shown = headwater("jobs", jobs, "--diagnose", "count").out
    assert "never generated, though the function's others are: 1" in shown
    assert "lost" in shown


def test_paths(headwater, jobs: Path) -> None:
    rows = headwater("paths", jobs, "count", "--through", "map", "--json").json
    assert [row["name"] for row in rows if row["path"] == 1] == [
        "count-1",
        "reduce of pair-1",
        "pair-1",
        "map of tweet-1",
        "tweet-1",
    ]
    assert "2 paths" in headwater("paths", jobs, "count", "--through", "map").out
    cut = headwater("paths", jobs, "count", "--limit", 1)
    assert "the first 1 paths; limit= (--limit) shows more" in cut.out
    cut = headwater("paths", jobs, "count", "--limit", 1, "--json")
    assert {row["path"] for row in cut.json} == {1}
    assert cut.err == "headwater: the first 1 paths; limit= (--limit) shows more\n"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["backward", "{}", "--entity", "reporte"], "did you mean 'report'?"),
        (["depends", "{}", "report", "twet-1"], "did you mean 'tweet-1'?"),
        (["jobs", "{}", "--diagnose", "counts"], "did you mean 'count'?"),
        (["paths", "{}", "count", "--through", "sort"], "no function 'sort'"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_errors_are_one_line(headwater, jobs: Path, args: list[str], says: str) -> None:
    failed = headwater(*(arg.format(jobs) for arg in args))
    assert failed.code == 1
    assert failed.out == ""
    assert failed.err.startswith("headwater: ")
    assert failed.err.count("\n") == 1
    assert says in failed.err
