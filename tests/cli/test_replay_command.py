"""`headwater replay` and `backward --to`, on a store captured eagerly and on one that replays."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.examples import linear_road

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lazy(demo: Path, spark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's reports, captured with nothing carried."""
    folder = tmp_path_factory.mktemp("lazy")
    linear_road.flow(demo / "data").start(store=folder / "store", available_now=True).wait()
    return folder / "store"


@pytest.fixture(params=["eager", "ancestors"])
def either(request: pytest.FixtureRequest, store: Path, lazy: Path) -> Path:
    """A store of either kind."""
    return store if request.param == "eager" else lazy


def test_a_result_is_the_same_again(headwater, either: Path) -> None:
    alert = headwater("results", either, "--limit", 1, "--json").json[0]
    done = headwater("replay", either, "stopped", alert["result_id"], "--json")
    assert done.code == 0
    assert done.json["matches"] is True
    assert done.json["row"]["vid"] == alert["vid"]
    assert len(done.json["sources"]) == 4
    assert done.json["differences"] == {}
    said = headwater("replay", either, "stopped", alert["result_id"]).out
    assert "the same as stored, from 4 records alone" in said
    assert "window = 2" in said
    assert "datetime" not in said


def test_the_steps_on_the_way(headwater, lazy: Path) -> None:
    alert = headwater("results", lazy, "--limit", 1, "--json").json[0]["result_id"]
    steps = headwater("replay", lazy, "stopped", alert, "--step", "--json").json["steps"]
    assert [(s["step"], len(s["rows"])) for s in steps] == [
        ("reports", 4),
        ("filter-1", 4),
        ("aggregate-1", 1),
        ("filter-2", 1),
    ]
    said = headwater("replay", lazy, "stopped", alert, "--step").out
    assert "filter-1  filter: ((type = 0) AND (speed = 0))" in said


def test_backward_to_a_step(headwater, either: Path) -> None:
    alert = headwater("results", either, "--limit", 1, "--json").json[0]
    (window,) = headwater(
        "backward", either, "stopped", alert["result_id"], "--to", "aggregate-1", "--json"
    ).json
    assert (window["source"], window["n"], window["vid"]) == ("aggregate-1", 4, alert["vid"])
    wrong = headwater("backward", either, "stopped", alert["result_id"], "--to", "aggregate-9")
    assert wrong.code == 1
    assert "has no step 'aggregate-9' above it; it has: reports, filter-1" in wrong.err


def test_lazy_answers_are_the_eager_ones(headwater, store: Path, lazy: Path) -> None:
    alert = headwater("results", lazy, "--limit", 1, "--json").json[0]["result_id"]
    answers = [
        headwater("backward", each, "stopped", alert, "--json").json for each in (store, lazy)
    ]
    assert sorted(r["id"] for r in answers[0]) == sorted(r["id"] for r in answers[1])
    report = answers[0][0]["id"]
    reached = [
        headwater("forward", each, "reports", report, "--json").json for each in (store, lazy)
    ]
    assert {r["result_id"] for r in reached[0]} == {r["result_id"] for r in reached[1]}


def test_an_unknown_result(headwater, lazy: Path) -> None:
    done = headwater("replay", lazy, "stopped", 5)
    assert done.code == 1
    assert done.err == "headwater: sink 'stopped' has no result with the id 5\n"
