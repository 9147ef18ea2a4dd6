"""`headwater bench all`: sizes, budgets, going on, failures and the page, without measuring."""

from __future__ import annotations

import subprocess
import sys
import time
from json import loads
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from headwater.bench import figures
from headwater.bench.everything import page, running
from headwater.bench.everything.compared import VIEWS, View
from headwater.bench.everything.papers import TOLD
from headwater.bench.everything.parts import BENCHMARKS, RUNS, chosen
from headwater.bench.everything.picture import drawn
from headwater.bench.everything.running import Budget, Folder, apart, run_all
from headwater.bench.everything.sanity import problems
from headwater.bench.everything.sizes import MEASURED, PAIRS
from headwater.cli import app
from headwater.cli.bench import app as bench
from headwater.errors import HeadwaterError

MACHINE = {"cores": 2}


def report(*rows: dict[str, Any], title: str = "T") -> dict[str, Any]:
    return {"machine": MACHINE, "title": title, "rows": list(rows), "notes": ["a note"]}


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that were run apart; `storage` fails whenever it is run."""
    ran: list[list[str]] = []

    def fake(arguments: list[str], log: Path, limit: float) -> dict[str, Any]:
        ran.append(arguments)
        if arguments[0] == "storage":
            raise HeadwaterError("the disk is full")
        return report({"mode": "eager", "window": 10, "ratio": 0.8, "95 %": [0.7, 0.9]})

    monkeypatch.setattr(running, "apart", fake)
    return ran


def test_every_benchmark_is_there_in_every_size() -> None:
    assert list(BENCHMARKS) == list(page.HEADINGS)
    for run in RUNS:
        assert set(MEASURED) <= set(run.sizes)
        seconds = [run.sizes[size].seconds for size in MEASURED]
        assert seconds == sorted(seconds)
        for size in MEASURED:
            unpaired = run.benchmark in ("storage", "replay", "queries")
            assert ("--pairs" in run.arguments(size)) != unpaired
            assert unpaired or run.arguments(size)[-1] == str(PAIRS) == "5"
    assert {view.benchmark for view in VIEWS} <= set(BENCHMARKS)


def test_every_command_is_one_that_can_be_typed() -> None:
    commands: Any = get_command(bench)
    for run in RUNS:
        for size in run.sizes:
            name, *arguments = run.arguments(size)
            # It is parsed, and nothing is measured.
            made = commands.commands[name].make_context(name, [*arguments, "--json"])
            assert made.params["json"] is True


def test_what_papers_say_stands_beside_something() -> None:
    drawn = {(name, view.column) for view in VIEWS for name in view.runs}
    for told in TOLD:
        assert told.run in {run.name for run in RUNS}
        assert (told.run, told.column) in drawn or told.run in page.TABLES, told
        assert told.high is None or told.value < told.high
        assert told.where[-1].isalnum(), "a section"


def test_a_call_goes_on_where_the_last_one_was(ran: list[list[str]], tmp_path: Path) -> None:
    said: list[str] = []
    folder = Folder(tmp_path, said.append)
    runs = chosen(["capture-basic", "storage", "queries"])
    assert not run_all(runs, folder), "storage failed"
    assert [arguments[0] for arguments in ran] == ["capture", "storage", "queries"]
    assert "2/3 storage: failed: the disk is full (0 s)" in said
    ran.clear()
    assert not run_all(runs, folder)
    assert [arguments[0] for arguments in ran] == ["storage"], "only what failed runs again"
    ran.clear()
    assert run_all(chosen(["queries"]), folder, size="medium")
    assert ran == [chosen(["queries"])[0].arguments("medium")], "another size is another run"


def test_sizes_are_chosen_by_the_time_that_is_left() -> None:
    runs = chosen(["reduce-ceiling", "reduce-partitions"])
    estimates = {size: sum(run.sizes[size].seconds for run in runs) for size in MEASURED}
    for size in MEASURED:
        assert Budget(estimates[size]).size(runs) == size
    assert Budget(1.0).size(runs) == "small", "nothing is smaller"
    first, second = runs
    budget = Budget(first.sizes["small"].seconds * 3 + second.sizes["medium"].seconds * 3)
    budget.took(first, "small", 3 * first.sizes["small"].seconds)
    assert budget.slowness == 3
    assert budget.size([second]) == "medium", "three times as slow as reckoned"


def test_what_is_left_when_time_is_up_is_told(ran: list[list[str]], tmp_path: Path) -> None:
    said: list[str] = []
    assert not run_all(chosen(["queries"]), Folder(tmp_path, said.append), budget=Budget(0))
    assert ran == []
    assert said == ["the time is used up; left for the next call: queries"]


def test_the_command_tells_failures_on_the_page(ran: list[list[str]], tmp_path: Path) -> None:
    made = tmp_path / "docs" / "benchmarks.md"
    made.parent.mkdir()
    made.write_text(f"Above.\n{page.BEGIN}\nold\n{page.END}\nBelow.\n")
    only = "--only capture-basic --only storage --minutes 10 --json".split()
    kept = ["--folder", str(tmp_path / "kept"), "--page", str(made)]
    done = CliRunner().invoke(app, ["bench", "all", *only, *kept])
    assert done.exit_code == 1
    text = made.read_text()
    assert "**`storage` failed**: the disk is full" in text
    assert text.startswith("Above.")
    assert text.endswith("Below.\n")
    assert "old" not in text
    assert "| basic, window 10 | eager | 0.80 | 0.70 – 0.90 |" in text
    said = "| *Ariadne's paper, eager* | *0.83* |  | Ariadne, Figure 13, 6.3: 20 % more time |"
    assert said in text
    assert "Not run: `capture-linear-road`, " in text
    numbers = loads(made.with_suffix(".json").read_text())
    assert numbers == loads(done.stdout)
    assert numbers["runs"]["storage"]["run"]["failed"] == "the disk is full"
    assert numbers["runs"]["capture-basic"]["run"]["size"] == "medium", "ten minutes for both"


def test_an_unknown_benchmark_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "all", "--only", "speed", "--folder", str(tmp_path)])
    assert done.exit_code == 1
    assert "there is no benchmark 'speed'; there are capture, " in done.stderr


def test_a_run_apart_tells_what_it_printed_or_why_it_failed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    made = apart("flow --part labels --quick".split(), log, 300)
    assert made["suites"]["labels"][0]["rows"]
    with pytest.raises(HeadwaterError, match="it ended with 1: cores=99: this process may use"):
        apart("reduce --edges 1000 --cores 99".split(), log, 300)
    with pytest.raises(HeadwaterError, match="not done after 0 s; it was ended"):
        apart("flow --part labels".split(), log, 0.1)


def test_what_runs_apart_ends_with_the_command(tmp_path: Path) -> None:
    arguments = "bench all --only flow-labels --size full --folder".split()
    command = [sys.executable, "-m", "headwater", *arguments, str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "headwater bench flow --part labels" in process.stderr.readline()
        (child,) = _children(process.pid)
        process.terminate()
        assert process.wait(30) == 143
    assert not Path(f"/proc/{child}").exists()


def _children(of: int) -> list[int]:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        if found := Path(f"/proc/{of}/task/{of}/children").read_text().split():
            return [int(each) for each in found]
        time.sleep(0.05)
    return []


def test_a_report_that_cannot_be_true_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wild = report({"mode": "eager", "ratio": 70.0}, title="Rates, medians of 5")
    monkeypatch.setattr(running, "apart", lambda *_: wild)
    (run,) = chosen(["queries"])
    assert "ratio 70.0 of mode eager" in running.run_one(run, "small", tmp_path)["run"]["failed"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"a": float("nan")}, "a nan of a row is no number"),
        ({"events/s": 0}, "events/s 0 of a row is no rate"),
        ({"95 %": [0.9, 0.8]}, "the interval [0.9, 0.8] of a row is none"),
        ({"saved %": 101.0}, "is not between -100 and 100"),
    ],
)
def test_what_cannot_be_true(row: dict[str, Any], said: str) -> None:
    (problem,) = problems(report(row))
    assert said in problem
    assert problems(report()) == ["T: there are no rows"]


def test_a_spread_beyond_the_picture_ends_at_its_edge() -> None:
    view = View("x", "capture", ("capture-slides",), "Rates < 1", "ratio", ("slide",))
    rows = [{"slide": n, "mode": "eager", "ratio": 0.5, "95 %": [1e-9, 1e9]} for n in (10, 50)]
    groups = view.groups({"capture-slides": {"run": {}, **report(*rows)}})
    picture = drawn(view, groups)
    assert "Rates &lt; 1" in picture
    assert picture.count("<circle") == 2
    assert 'd="M330.0 71 H730.0"' in picture
    assert drawn(view, []) == ""


def test_kept_reports_make_the_page_of_scaling(tmp_path: Path) -> None:
    """What `bench all` keeps of `bench scale` is what that page is written from."""
    rows = [{"records": 1_000, "store": "embedded", "edges/s": 5}]
    rows.append({"records": 1_000, "store": "lake", "edges/s": 4, "ratio": 0.8, "95 %": [0.7, 0.9]})
    suites = {"stores": [{"title": "Stores", "rows": rows, "notes": []}]}
    (run,) = chosen(["scale-stores"])
    kept = Folder(tmp_path)
    told = {"name": run.name, "size": "small"}
    kept.keep(run, {"run": told, "machine": MACHINE, "suites": suites})
    made = tmp_path / "scaling.md"
    made.write_text(f"{figures.BEGIN}\n{figures.END}\n")
    figures.main([str(made), str(kept.file(run))])
    assert "| 1,000 | lake | 4 | 0.800 | 0.700 – 0.900 |" in made.read_text()
