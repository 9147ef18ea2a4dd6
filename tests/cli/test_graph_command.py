"""`headwater graph` and `headwater watch`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headwater.flow.reach import Reach
from headwater.flow.reach_rules import Rule
from headwater.live.graph import LiveGraph
from headwater.store import EmbeddedWriter
from tests.store.small import at, batch, flow, stopped

START = Rule("reports", "start")
TENS = Rule("tens", "window", ("reports",), size=10_000_000, slide=10_000_000)
SINK = Rule("stopped", "pass", ("tens",))
REACH = Reach("reports", (START, TENS, SINK), ("stopped",), ananke=10_000_000)


def micros(second: int) -> int:
    return int(at(second).timestamp()) * 1_000_000


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Windows of ten seconds: 1 and 2 made 7 at 12, 3 made 8 at 23; 4 is in none that closed."""
    live = {"expiry": "tight", "reach": {"reports": REACH.to_json()}}
    graph = LiveGraph({"reports": REACH}, "tight", tmp_path / "live" / "traffic")
    times = {1: 1, 2: 4, 3: 12, 4: 23}
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(replace(flow(), definition={"live": live}))
        for number, (watermark, came, made) in enumerate(
            [
                (None, [1, 2], stopped()),
                (12, [3], stopped((7, 9, "a", 2, [1, 2]))),
                (23, [4], stopped((8, 19, "b", 1, [3]))),
            ]
        ):
            ids = np.array(came)
            graph.begin(
                number,
                None if watermark is None else micros(watermark),
                {"reports": (ids, np.array([micros(times[i]) for i in came]))},
                {},
            )
            moment = None if watermark is None else at(watermark)
            writer.commit(replace(batch(number, made), watermark=moment, graph=graph))
            graph.accept()
    return tmp_path


def test_the_graph_as_json(headwater, place: Path) -> None:
    done = headwater("graph", place, "--json")
    assert (done.code, done.err) == (0, "")
    graph = done.json
    assert [(v["kind"], v["name"], v["id"]) for v in graph["vertices"]] == [
        ("source", "reports", 1),
        ("source", "reports", 2),
        ("result", "stopped", 7),
        ("source", "reports", 3),
        ("result", "stopped", 8),
    ]
    assert [(e["source_id"], e["result_id"], e["batch"]) for e in graph["edges"]] == [
        (1, 7, 1),
        (2, 7, 1),
        (3, 8, 2),
    ]
    assert [v["id"] for v in graph["labels"]] == [1, 2, 7, 3, 8]
    then = headwater("graph", place, "--at", "2024-05-01T00:00:12", "--json").json
    assert [v["id"] for v in then["vertices"]] == [1, 2, 7]


def test_the_graph_in_tables_and_for_graphviz(headwater, place: Path) -> None:
    shown = headwater("graph", place)
    assert "5 vertices" in shown.out
    assert "3 edges" in shown.out
    drawn = headwater("graph", place, "--dot").out
    assert drawn.startswith("digraph headwater {")
    assert '"source/reports/1" -> "result/stopped/7";' in drawn
    assert drawn.count("fillcolor") == 5


def test_following_from_a_position(headwater, place: Path) -> None:
    lines = headwater("graph", place, "--follow", "--json", "--timeout", 0).out.splitlines()
    changes = [json.loads(line) for line in lines]
    assert [(c["position"], c["batch"], len(c["edges"])) for c in changes] == [
        (1, 0, 0),
        (2, 1, 2),
        (3, 2, 1),
    ]
    told = headwater("graph", place, "--follow", "--after", 2, "--timeout", 0).out
    assert told == (
        "3  traffic batch 2 (2024-05-01T00:00:23+00:00): 2 vertices, 1 edges, 2 labels\n"
    )


def test_watching(headwater, place: Path, tmp_path: Path) -> None:
    seen = headwater("watch", place, "stopped", "--where", "n > 1", "--after", 0, "--timeout", 0)
    match = json.loads(seen.out)
    assert match["result"]["result_id"] == 7
    assert [record["id"] for record in match["records"]] == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("graph", "--follow", "--dot"), 2, "--follow prints changes"),
        (("graph", "--dot", "--json"), 2, "choose one of"),
        (("graph", "--at", "soon"), 2, "soon"),
        (("graph", "--flow", "other"), 1, "flow 'other' has no live graph here; those with one: t"),
        (("watch", "--where", "n >"), 1, "is not an SQL predicate"),
    ],
)
def test_bad_input(
    headwater, place: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    command, *rest = arguments
    sink = ["stopped"] if command == "watch" else []
    done = headwater(command, place, *sink, *rest)
    assert done.code == code
    assert says in " ".join(done.err.split())
