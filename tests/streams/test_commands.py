"""`headwater streams` and `headwater publish`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from headwater.cli import publish, streams
from headwater.cli.app import Commands
from headwater.streams import Producer, Streams

Call = Callable[..., Result]


@pytest.fixture
def call(opened: Streams, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs a command on the test's streams folder."""
    monkeypatch.setenv("HEADWATER_STREAMS", str(opened.folder))
    app = typer.Typer(cls=Commands, rich_markup_mode="markdown")
    app.callback()(lambda: None)
    app.add_typer(streams.app, name="streams")
    app.command()(publish.publish)

    def run(*args: object, input: str | None = None) -> Result:
        found = CliRunner().invoke(app, [str(a) for a in args], input, prog_name="headwater")
        if found.exception and not isinstance(found.exception, SystemExit):
            raise found.exception
        return found

    return run


def told(outcome: Result) -> Any:
    assert outcome.exit_code == 0, outcome.output
    return json.loads(outcome.stdout)


def test_publish_list_show_and_follow(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "scans.jsonl"
    file.write_text('{"scan": 1, "at": "2025-01-01T00:00:00Z"}\nbad\n{"scan": 2}\n')
    schema = "scan bigint, at timestamp"
    args = ["--create", "--schema", schema, "--event-time", "at"]
    assert told(call("publish", "radar", file, *args, "--json")) == {
        "stream": "radar",
        "created": True,
        "published": 2,
        "rejected": 1,
        "skipped": 0,
        "reasons": {"not a JSON object on one line: Expecting value: line 1 column 1 (char 0)": 1},
    }
    (listed,) = told(call("streams", "--json"))
    assert (listed["name"], listed["schema"], listed["state"]) == ("radar", schema, "live")
    assert sum(listed["rates"]) == 2.0
    assert listed["last_event"] == {"scan": 2, "at": None}
    assert told(call("streams", "radar", "--json"))["dead_letters"] == 1
    assert told(call("streams", "--json", "radar")) | {"rates": []} == listed | {"rates": []}
    assert "positions 0 to 2" in call("streams", "radar").stdout
    assert "radar" in call("streams").stdout
    follow = call("streams", "follow", "radar", "--after", "start", "--limit", 2, "--json")
    assert [json.loads(line)["position"] for line in follow.stdout.splitlines()] == [0, 1]
    follow = call("streams", "follow", "radar", "--after", 1, "--idle", 0)
    assert json.loads(follow.stdout) == {"scan": 2, "at": None}


def test_a_schema_is_told_by_the_events(call: Call, opened: Streams) -> None:
    lines = '{"n": 1, "at": "2025-01-01T00:00:00", "seen": "2025-01-01T00:00:00Z"}\n{"x": null}\n'
    args = ["--format", "json", "--create", "--event-time", "at"]
    assert told(call("publish", "s", "-", *args, "--json", input=lines))["published"] == 2
    assert opened.declaration("s").schema == "n bigint, at timestamp, seen timestamp, x string"
    again = call("publish", "s", "-", *args, input=lines)
    assert "stream 's' is there already in" in again.stderr


def test_publish_from_stdin_by_bindings_and_at_a_rate(call: Call, opened: Streams) -> None:
    lines = "".join(f'{{"a": {{"b": {n}}}}}\n' for n in range(4))
    args = ["--format", "json", "--bind", "n := $.a.b : INTEGER", "--create", "--rate", 40]
    assert told(call("publish", "s", "-", *args, "--json", input=lines))["published"] == 4
    assert opened.table("s")["n"].to_pylist() == [0, 1, 2, 3]
    assert "s: 4 events published" in call("publish", "s", "-", *args[:4], input=lines).stdout


def test_another_producers_stream_needs_consent(
    call: Call, opened: Streams, tmp_path: Path
) -> None:
    opened.create("alerts", "n int", producer=Producer("weather/alerts", "flow"))
    file = tmp_path / "n.csv"
    file.write_text("n\n1\n")
    refused = call("publish", "alerts", file)
    assert refused.exit_code == 1
    assert refused.stderr.startswith("headwater: stream 'alerts' is of flow weather/alerts, not of")
    assert told(call("publish", "alerts", file, "--into-existing", "--json"))["published"] == 1


def test_create_stop_resume_expire_forget_and_remove(call: Call, opened: Streams) -> None:
    assert call("streams", "create", "s", "--schema", "n int").stdout == "s: created\n"
    opened.publish("s", [{"n": 1}, {"n": 2}])
    assert call("streams", "stop", "s").exit_code == 0
    assert told(call("streams", "s", "--json"))["state"] == "stopped"
    assert call("streams", "resume", "s").exit_code == 0
    opened.advance("s", "page", 0)
    assert "page: 2 behind, at 0" in call("streams", "s").stdout
    assert (
        "'page' of stream 's' has read to" in call("streams", "expire", "s", "--before", 2).stderr
    )
    assert call("streams", "remove", "s").exit_code == 1
    assert call("streams", "forget", "s", "page").exit_code == 0
    assert told(call("streams", "expire", "s", "--before", "2", "--json"))["expired"] == 2
    assert call("streams", "expire", "s", "--before", "tomorrow").exit_code == 2
    assert call("streams", "remove", "s").stdout == "s: removed\n"
    assert "no stream 's'" in call("streams", "s").stderr
    assert told(call("streams", "--json")) == []


COMMANDS = "show create stop resume remove forget expire follow".split()


@pytest.mark.parametrize(
    "command", [["streams"], ["publish"], *(["streams", name] for name in COMMANDS)], ids=" ".join
)
def test_every_command_explains_itself_by_an_example(call: Call, command: list[str]) -> None:
    shown = call(*command, "--help")
    assert shown.exit_code == 0
    assert f"Example: headwater {' '.join(command)}" in " ".join(shown.stdout.split())
    assert "--json" in shown.stdout
