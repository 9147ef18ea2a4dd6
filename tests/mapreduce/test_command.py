"""`headwater mapreduce`."""

from __future__ import annotations

import json
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import typer
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from headwater.cli.app import Commands
from headwater.cli.mapreduce import mapreduce
from tests.mapreduce.lab import Lab

numbers = count()

app = typer.Typer(cls=Commands, pretty_exceptions_enable=False)
app.command("mapreduce")(mapreduce)


@app.callback()
def main(debug: bool = False) -> None:
    """So that it is a command of several, as in `headwater`."""


def call(*args: object) -> Any:
    return CliRunner().invoke(app, ["mapreduce", *map(str, args)])


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"mapreduce_job{next(numbers)}"
    (tmp_path / f"{name}.py").write_text(
        "def first(line):\n"
        "    return [(line[0], len(line))]\n"
        "def longest(key, values):\n"
        "    return max(values)\n"
        "answer = 42\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    return name


@pytest.mark.spark
def test_functions_of_a_module(spark: SparkSession, tmp_path: Path, module: str) -> None:
    lab = Lab(tmp_path)
    lab.put("a", "ab\nabc\n\nb\n", 0)
    lab.put("shutdown.txt", "", 1)
    args = [lab.input, "--map", f"{module}:first", "--reduce", f"{module}:longest"]
    args += ["--combine", "reduce", "--window", "10 min", "--store", lab.store, "--out", "counts"]
    args += ["--streams", lab.streams, "--settle", 0]
    done = call(*args, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    # The second reduce is of the empty window: ten minutes have long passed.
    assert (told["reduces"], told["results"], told["files"], told["rejected"]) == (2, 2, 1, 1)
    assert told["ended"]
    assert lab.published() == {0: {"a": 3, "b": 1}}
    again = call(*args)
    assert again.exit_code == 0
    assert "0 reduces of 1 files: 0 results in stream 'counts'" in again.stdout
    assert "1 rejected" in again.stdout


def test_errors_are_one_line(tmp_path: Path, module: str) -> None:
    def said(**told: str) -> tuple[int, str]:
        given = {"map": "words", "reduce": "sum", "window": "3", "out": "c", "store": "s", **told}
        done = call(tmp_path, *(word for k, v in given.items() for word in (f"--{k}", v)))
        return done.exit_code, done.stderr

    assert said(map=f"{module}:nothing") == (
        1,
        f"headwater: module {module!r} has no 'nothing'\n",
    )
    assert "42" not in said(map=f"{module}:answer")[1]
    assert said(map=f"{module}:answer")[1].endswith("is a int, not a function\n")
    assert "importing 'no_module' failed" in said(reduce="no_module:f")[1]
    assert call(tmp_path, "--map", "words").exit_code == 2
    assert "Example: " in call("--help").stdout
