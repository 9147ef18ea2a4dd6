"""Drawings: no two nodes in one place, every edge goes right, chains are straight."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.compose import Composition
from headwater.compose.layout import layout, layout_of
from headwater.compose.violations import CompositionError
from tests.compose.strategies import COMPOSITIONS

FLOW = """
flow: weather
nodes:
  radar:  {source: {stream: radar, schema: "scan bigint, station string"}}
  level:  {static: {value: 35}}
  north:  {filter: {from: radar, where: "station = 'N'"}}
  south:  {filter: {from: radar, where: "station = 'S'"}}
  both:   {merge: {from: [north, south]}}
  storms: {service: {from: {event: both, level: level}, target: "https://example.org/find", response: "cells int"}}
  strong: {filter: {from: storms, where: cells > 3}}
  alerts: {sink: {from: strong, stream: alerts}}
  missed: {filter: {from: storms.failures, where: "attempts > 1"}}
"""  # noqa: E501


def documents(cycles: bool = False) -> st.SearchStrategy[dict[str, Any]]:
    """Documents of a flow file: nodes that read some of those above, or any of them."""

    @st.composite
    def made(draw: st.DrawFn) -> dict[str, Any]:
        names = [f"n{at}" for at in range(draw(st.integers(1, 14)))]
        nodes = {}
        for at, name in enumerate(names):
            there = names if cycles else names[:at]
            picked = (
                draw(st.lists(st.sampled_from(there), unique=True, max_size=3)) if there else []
            )
            nodes[name] = {"sql": {"from": picked}}
        return {"flow": "f", "nodes": nodes}

    return made()


def free(drawn: dict[str, Any]) -> bool:
    """Whether no box is over another."""
    rows: dict[int, list[float]] = {}
    for place in drawn["nodes"].values():
        rows.setdefault(place["x"], []).append(place["y"])
    return all(
        lower - upper >= 1
        for column in rows.values()
        for upper, lower in zip(sorted(column), sorted(column)[1:], strict=False)
    )


def inside(drawn: dict[str, Any]) -> bool:
    """Whether everything is within the drawing."""
    bends = [bend for edge in drawn["edges"] for bend in edge.get("bends", ())]
    return all(
        0 <= place["x"] <= drawn["width"] - 1 and 0 <= place["y"] <= drawn["height"] - 1
        for place in [*drawn["nodes"].values(), *bends]
    )


@given(documents())
def test_edges_go_right_and_nodes_have_their_place(document: dict[str, Any]) -> None:
    drawn = layout_of(document)
    at = drawn["nodes"]
    assert list(at) == list(document["nodes"])
    assert free(drawn)
    assert inside(drawn)
    assert all(at[edge["from"]]["x"] < at[edge["to"]]["x"] for edge in drawn["edges"])
    assert drawn == layout_of(document)


@given(documents())
def test_long_edges_have_a_bend_in_each_layer_between(document: dict[str, Any]) -> None:
    drawn = layout_of(document)
    at = drawn["nodes"]
    places = {(place["x"], place["y"]) for place in at.values()}
    for edge in drawn["edges"]:
        columns = [bend["x"] for bend in edge.get("bends", ())]
        assert columns == list(range(at[edge["from"]]["x"] + 1, at[edge["to"]]["x"]))
        assert not places & {(bend["x"], bend["y"]) for bend in edge.get("bends", ())}


@given(documents())
def test_chains_are_straight(document: dict[str, Any]) -> None:
    drawn = layout_of(document)
    into = [edge["to"] for edge in drawn["edges"]]
    out = [edge["from"] for edge in drawn["edges"]]
    for edge in drawn["edges"]:
        if into.count(edge["to"]) == 1 and out.count(edge["from"]) == 1:
            assert drawn["nodes"][edge["from"]]["y"] == drawn["nodes"][edge["to"]]["y"]


@given(documents(cycles=True))
def test_a_cycle_is_drawn_as_well(document: dict[str, Any]) -> None:
    drawn = layout_of(document)
    assert free(drawn)
    assert inside(drawn)
    assert len(drawn["nodes"]) == len(document["nodes"])


@given(COMPOSITIONS)
def test_plans_and_compositions_that_break_rules(flow: Composition) -> None:
    drawn = layout_of(flow)
    assert list(drawn["nodes"]) == list(flow)
    assert free(drawn)
    try:
        plan = flow.plan()
    except CompositionError:
        return
    planned = layout(plan)
    assert planned["nodes"] == drawn["nodes"]
    assert all(
        planned["nodes"][edge["from"]]["x"] < planned["nodes"][edge["to"]]["x"]
        for edge in planned["edges"]
    )


def test_edges_know_their_port_and_their_stream() -> None:
    edges = {
        (edge["from"], edge["to"]): (edge["port"], edge["output"], edge["static"], edge["stream"])
        for edge in layout(Composition.parse(FLOW).plan())["edges"]
    }
    assert edges["radar", "north"] == ("radar", None, False, None)
    assert edges["both", "storms"] == ("event", None, False, "weather.both")
    assert edges["level", "storms"] == ("level", None, True, None)
    assert edges["storms", "missed"] == (
        "storms_failures",
        "failures",
        False,
        "weather.storms.failures",
    )


def test_what_reads_nothing_stands_before_its_reader() -> None:
    at = layout(Composition.parse(FLOW).plan())["nodes"]
    assert at["level"]["x"] == at["storms"]["x"] - 1


def test_parts_that_are_not_connected_are_stacked() -> None:
    sources = {name: {"source": {"stream": name}} for name in ("a", "b")}
    readers = {f"{name}2": {"filter": {"from": name}} for name in sources}
    drawn = layout_of({"flow": "f", "nodes": {**sources, **readers}})
    assert drawn["nodes"] == {
        "a": {"x": 0, "y": 0},
        "b": {"x": 0, "y": 1},
        "a2": {"x": 1, "y": 0},
        "b2": {"x": 1, "y": 1},
    }
    assert (drawn["width"], drawn["height"]) == (2, 2)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"nodes": None},
        {"nodes": {}},
        {"nodes": {"a": None}},
        {"nodes": {"a": {"filter": None}}},
        {"nodes": {"a": {"filter": {"from": 7}}}},
        {"nodes": {"a": {}}},
        {"nodes": {"a": {"filter": {"from": "gone"}}}},
    ],
)
def test_whatever_a_file_says_is_drawn(document: dict[str, Any]) -> None:
    drawn = layout_of(document)
    assert list(drawn["nodes"]) == list(document.get("nodes") or ())
    assert drawn["edges"] == []


def test_a_thousand_nodes_are_soon_drawn() -> None:
    nodes = {
        f"n{at}": {
            "sql": {"from": [f"n{(at * step) % max(at, 1)}" for step in (3, 7)] if at else []}
        }
        for at in range(1000)
    }
    began = time.perf_counter()
    drawn = layout_of({"flow": "f", "nodes": nodes})
    assert time.perf_counter() - began < 5
    assert free(drawn)
