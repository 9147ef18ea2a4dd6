"""`headwater flow deploy` and its sisters, in a process of their own and through a running host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from headwater import streams
from headwater.cli.app import app
from tests.deploy.support import event, host_of, publish, rows, settle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMS = 'stream: nums, schema: "n bigint, at timestamp, k string, v bigint", event_time: at, id: n'
FLOW = f"""
flow: told
nodes:
  nums: {{source: {{{NUMS}, watermark: 0 seconds}}}}
  even: {{filter: {{from: nums, where: n % 2 = 0}}}}
  evens: {{sink: {{from: even, stream: evens}}}}
  odd: {{filter: {{from: nums, where: n = 3}}}}
  worked: {{job: {{from: odd, call: "tests.deploy.functions:work", static: {{table: [1]}}, schema: "n bigint, made bigint", retries: 0}}}}
"""


def told(*words: object) -> Any:
    """What a command says in JSON."""
    result = CliRunner().invoke(app, [str(word) for word in (*words, "--json")])
    assert result.exit_code == 0, result.output or result.exception
    return json.loads(result.stdout)


def refused(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 1
    return str(result.stderr)


@pytest.fixture
def place(tmp_path: Path) -> dict[str, Path]:
    (tmp_path / "told.yaml").write_text(FLOW)
    return {
        "file": tmp_path / "told.yaml",
        "flows": tmp_path / "flows",
        "streams": tmp_path / "streams",
    }


def test_deployed_once_then_again(place: dict[str, Path], spark: SparkSession) -> None:
    registry = streams.open(place["streams"])
    registry.create("nums", "n bigint, at timestamp, k string, v bigint", event_time="at", id="n")
    registry.publish("nums", [event(n) for n in range(10)])
    where = ("--flows", place["flows"], "--streams", place["streams"])
    done = told("flow", "deploy", place["file"], *where, "--once")
    assert (done["version"], done["started"]) == (1, ["even@1", "worked@1"])
    assert registry.describe("evens").events == 5
    registry.publish("nums", [event(n) for n in range(10, 16)])
    result = CliRunner().invoke(app, [*map(str, ("flow", "run", *where)), "--once"])
    assert result.exit_code == 0, result.output
    assert registry.describe("evens").events == 8
    listed = told("flow", "versions", "told", "--flows", place["flows"])
    assert [(row["version"], row["action"], row["current"]) for row in listed] == [
        (1, "deploy", True)
    ]
    again = told("flow", "rerun", "told", "worked", "--all", "--flows", place["flows"])
    assert len(again["rerun"]) == 1
    told("flow", "pause", "told", "worked", "--flows", place["flows"])
    told("flow", "pause", "told", "worked", "--off", "--flows", place["flows"])


def test_through_a_running_host(place: dict[str, Path], spark: SparkSession) -> None:
    at = ("--flows", place["flows"])
    with host_of(place["flows"].parent, spark) as host:
        assert told("flow", "deploy", place["file"], *at)["version"] == 1
        publish(host, 0, 6)
        settle(host)
        place["file"].write_text(FLOW.replace("n % 2 = 0", "n % 3 = 0"))
        changed = told("flow", "deploy", place["file"], *at)
        assert changed["difference"]["changed"] == {"even": ["where"]}
        assert (changed["ended"], changed["started"]) == (["even@1"], ["even@2"])
        assert changed["kept"] == ["worked@1"]
        assert told("flow", "undo", "told", *at)["version"] == 3
        tuned = told("flow", "set", "told", "worked", "table=[1, 2]", "slots=2", *at)
        assert tuned["difference"]["changed"] == {"worked": ["static", "slots"]}
        assert tuned["started"] == ["worked@4"]
        assert "has no 'wehre'" in refused("flow", "set", "told", "even", "wehre=n > 1", *at)
        assert "where is SQL" in refused("flow", "set", "told", "even", "where=[1]", *at)
        told("flow", "stop", "told", *at)
        assert host.deployment("told").units == []
        told("flow", "resume", "told", *at)
        publish(host, 6, 12)
        settle(host)
        assert sorted(row["n"] for row in rows(host, "evens")) == [0, 2, 4, 6, 8, 10]
        place["file"].write_text(FLOW.replace("n % 2 = 0", "m % 2 = 0"))
        assert "node 'even' of flow 'told'" in refused("flow", "deploy", place["file"], *at)
        assert "no flow 'tolt' is deployed" in refused("flow", "undo", "tolt", *at)


def test_what_can_not_be(place: dict[str, Path], tmp_path: Path) -> None:
    at = ("--flows", place["flows"])
    assert "no flow is deployed in" in refused("flow", "run", *at)
    assert "no process runs the flows" in refused("flow", "undo", "told", *at)
    assert "no flow 'told' is deployed" in refused("flow", "versions", "told", *at)
    assert "has no job 'worked'; it has none" in refused("flow", "rerun", "told", "worked", *at)
    bad = tmp_path / "bad.yaml"
    bad.write_text("flow: bad\nnodes:\n  a: {filter: {from: b, where: x}}\n")
    result = CliRunner().invoke(app, ["flow", "deploy", str(bad), *map(str, at)])
    assert result.exit_code == 1
    assert "'b'" in result.stderr
    assert not place["flows"].exists(), "nothing is half-written"
