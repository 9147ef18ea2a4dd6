"""`headwater reduce`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwater.testing.prov_graphs import dependencies
from tests.reduce.streams import END, dependencies_in, job, letters_in, put, shuffled, write


@pytest.fixture
def prov(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job's directory, in the working directory."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "prov", shuffled(job(20, seed=1), seed=2), files=2)
    return tmp_path / "prov"


def test_a_job_is_reduced_stopped_and_completed(headwater, spark, prov: Path) -> None:
    args = ["reduce", "prov", "--store", "store", "--job", "J", "--once", "--partitions", "2"]
    first = headwater(*args)
    assert first.code == 0
    assert first.out.startswith("job 'J' goes on")
    put(prov, 7, 'garbage\n{"type": "agent"}\n')
    done = headwater(*args, "--finish", "--json")
    assert done.code == 0
    expected = dependencies(job(20, seed=1))
    assert dependencies_in(Path("store"), "J") == expected
    told = done.json
    assert told["complete"] is True
    assert told["dependencies"] == told["after_global"] == len(expected)
    assert (told["elements"], told["edges"], told["filtered"]) == (2, 0, {"agent": 1})
    assert list(told["rejected"].values()) == [1]
    assert [letter["line"] for letter in letters_in(Path(told["dead_letters"]))] == ["garbage"]
    again = headwater(*args)
    assert (again.code, again.out) == (1, "")
    assert again.err.splitlines()[-1].startswith("headwater: job 'J' is finished")


def test_the_summary_says_what_became_of_the_elements(headwater, spark, prov: Path) -> None:
    put(prov, 7, 'garbage\n{"type": "agent"}\n' + END)
    args = ["--store", "store", "--job", "J", "--once", "--dead-letters", "dead"]
    done = headwater("reduce", "prov", *args, "--functions", "--partition", "horizontal")
    assert done.code == 0
    assert "job 'J' is complete" in done.out
    lines = {line.split("  ")[1]: line for line in done.out.splitlines()[1:] if "  " in line}
    assert {"elements", "edges", "after local", "after global"} <= set(lines)
    assert lines["rejected"].split() == [
        *"rejected 1 not JSON: Expecting value at column …".split()
    ]
    assert lines["filtered"].split() == ["filtered", "1", "agent"]
    assert lines["dead letters"].endswith("/dead")
    assert len(letters_in(Path("dead"))) == 1


def test_validating_needs_no_store_and_writes_nothing(headwater, prov: Path) -> None:
    fine = headwater("reduce", "prov", "--validate", "--json")
    assert fine.code == 0
    assert fine.json["valid"] is True
    assert sum(fine.json["edges"].values()) > 50
    put(prov, 7, 'garbage\n{"type": "agent"}\n' + END)
    shown = headwater("reduce", "prov", "--validate", "--job", "J")
    assert shown.code == 1
    assert "3 files (0 documents)" in shown.out
    assert "end of job 'J'" in shown.out
    assert "part-007.jsonl:1: not JSON" in shown.out
    assert [path.name for path in Path.cwd().iterdir()] == ["prov"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["nowhere"], "there is no directory"),
        (["prov", "--watermark", "5 minutes"], "watermark='5 minutes' is of strategy='watermark'"),
        (["prov", "--once", "--idle-after", "1 minute"], "either once=True"),
        (["prov", "--strategy", "window", "--keep", "full"], "keep='full'"),
        (["prov", "--option", "maxBytesPerTrigger=none"], "maxBytesPerTrigger='none'"),
    ],
)
def test_what_can_not_be_asked_is_told_before_spark_starts(
    headwater, prov: Path, args: list[str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.cli.spark.session", None)
    failed = headwater("reduce", *args, "--store", "store", "--job", "J")
    assert failed.code == 1
    assert says in failed.err
    assert failed.err.count("\n") == 1
    assert not Path("store").exists()


def test_json_is_all_that_is_on_stdout(headwater, spark, prov: Path) -> None:
    args = ["--store", "store", "--job", "ä/ß", "--once", "--json"]
    done = headwater("reduce", "prov", *args)
    assert json.loads(done.out)["job"] == "ä/ß"
    assert done.json["complete"] is False
    assert done.json["dependencies"] is None
    assert Path(done.json["dead_letters"]).is_relative_to(Path.cwd() / "store" / "jobs")
