"""Help, usage errors and the one-line errors of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw
from headwater.errors import StoreError

COMMANDS = [
    ["demo"],
    ["run"],
    ["results"],
    ["backward"],
    ["forward"],
    ["why-not"],
    ["mark"],
    ["marks"],
    ["marked"],
    ["unmark"],
    ["erase"],
    ["export"],
    ["reduce"],
    ["jobs"],
    ["depends"],
    ["paths"],
    ["flow", "check"],
    ["flow", "plan"],
    ["flow", "convert"],
    ["flow", "schema"],
    ["flow", "sustain"],
    ["flow", "watch"],
    ["flow", "deploy"],
    ["flow", "run"],
    ["flow", "undo"],
    ["flow", "set"],
    ["flow", "stop"],
    ["flow", "resume"],
    ["flow", "pause"],
    ["flow", "rerun"],
    ["flow", "versions"],
    ["streams"],
    ["streams", "create"],
    ["streams", "follow"],
    ["publish"],
    ["serve"],
    ["mapreduce"],
    ["compact"],
    ["copy"],
    ["doctor"],
    ["bench", "capture"],
    ["bench", "live"],
    ["bench", "flow"],
    ["bench", "serve"],
    ["bench", "scale"],
    ["bench", "reduce"],
    ["bench", "storage"],
    ["bench", "queries"],
    ["bench", "all"],
]


def test_help_lists_every_command(headwater) -> None:
    shown = headwater("--help")
    assert shown.code == 0
    for command in COMMANDS:
        assert command[0] in shown.out


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself_by_an_example(headwater, command: list[str]) -> None:
    shown = headwater(*command, "--help")
    assert shown.code == 0
    assert f"Example: headwater {' '.join(command)}" in " ".join(shown.out.split())
    assert "--json" in shown.out


def test_version(headwater) -> None:
    assert headwater("--version").out == f"headwater {hw.__version__}\n"


@pytest.mark.parametrize(
    "args",
    [
        ["nonsense"],
        ["results"],
        ["results", "s", "--limit", "-1"],
        ["results", "s", "--since", "tomorrow"],
        ["backward", "s", "sink"],
        ["backward", "s", "sink", "--jsn"],
        ["forward", "s", "source", "-x"],
        ["backward", "s", "sink", "1", "--entity", "e"],
        ["backward", "s", "sink", "1", "--steps"],
        ["forward", "s"],
        ["forward", "s", "source", "1", "--entity", "e"],
        ["depends", "s", "one"],
        ["paths", "s"],
        ["paths", "s", "job", "--limit", "0"],
        ["forward", "s", "source", "[1,"],
        ["why-not", "s", "source"],
        ["why-not", "s", "source", "1", "2"],
        ["why-not", "s", "source", "--jsn"],
        ["mark", "s", "source"],
        ["mark", "s", "source", "--where", "a", "--id", "1"],
        ["unmark", "s", "first"],
        ["erase", "s", "source", "--yes"],
        ["erase", "s", "source", "--mark", "1", "--id", "1"],
        ["reduce", "in"],
        ["reduce", "in", "--store", "s"],
        ["reduce", "in", "--store", "s", "--job", "j", "--strategy", "magic"],
        ["reduce", "in", "--store", "s", "--job", "j", "--partitions", "0"],
        ["reduce", "in", "--store", "s", "--job", "j", "--option", "key"],
        ["run", "module:flow"],
        ["run", "module:flow", "--store", "s", "--capture", "magic"],
        ["demo", "--reports", "3"],
        ["bench", "capture", "--format", "xml"],
        ["bench", "reduce", "--cores", "1,x"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_2(headwater, args: list[str]) -> None:
    wrong = headwater(*args)
    assert wrong.code == 2
    assert "Usage: headwater" in wrong.err
    assert wrong.out == ""


@pytest.mark.parametrize(
    "args",
    [["results", "{}"], ["backward", "{}", "stopped", "1"], ["forward", "{}", "reports", "1"]],
    ids=lambda args: args[0],
)
def test_an_error_is_one_line_and_exit_code_1(headwater, tmp_path: Path, args: list[str]) -> None:
    missing = tmp_path / "missing"
    failed = headwater(*(arg.format(missing) for arg in args))
    assert failed.code == 1
    assert failed.out == ""
    assert failed.err.startswith("headwater: ")
    assert failed.err.count("\n") == 1
    assert str(missing) in failed.err
    assert not missing.exists()


def test_debug_shows_the_traceback_wherever_it_stands(headwater, tmp_path: Path) -> None:
    for args in (["--debug", "results", tmp_path], ["results", tmp_path, "--debug"]):
        with pytest.raises(StoreError):
            headwater(*args)
