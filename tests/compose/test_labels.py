"""Promotion, cardinalities and runtimes of single nodes, and what they do to labels."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.compose import Composition, Plan


def stream() -> Composition:
    return Composition("x").source("s", stream="s").static("one", value=1)


def place(plan: Plan, node: str) -> tuple[str, str, str]:
    """The label, cardinality and runtime of a node."""
    return str(plan.labels[node]), str(plan.cardinalities.get(node)), plan.runtimes[node]


def test_a_static_node_is_promoted_by_a_stream_and_so_is_what_follows() -> None:
    flow = stream().static("a", ["one"], call="m:f").static("b", ["a", "s"], call="m:f")
    plan = flow.static("c", "b", call="m:f").plan()
    assert plan.promoted == ("b", "c")
    assert place(plan, "a") == ("static", "None", "static")
    assert place(plan, "b") == place(plan, "c") == ("s", "1", "functions")
    assert "b     static*" in plan.to_text()


KEPT: dict[str, dict[str, Any]] = {
    "map": {"columns": {"x": "a + 1"}},
    "function": {"call": "m:f", "schema": "x int"},
    "service": {"target": "m:f", "response": "x int"},
    "job": {"run": "x"},
    "sql": {"query": "select a, b + 1 as c from s"},
}
CHANGED: dict[str, tuple[dict[str, Any], str]] = {
    "filter": ({"where": "a > 1"}, "<1"),
    "map": ({"columns": {"x": "explode(xs)"}}, "unknown"),
    "function": ({"call": "m:f", "schema": "x int", "many": True}, "unknown"),
    "job": ({"run": "x", "per": {"count": 4}}, "1/4"),
    "aggregate": ({"window": {"count": 6, "slide": 2}, "columns": {"n": "count(*)"}}, "1/2"),
    "match": ({"pattern": "A B", "measures": {"n": "count(*)"}}, "<1"),
    "sql": ({"query": "select * from s where a > 1"}, "<1"),
}


@pytest.mark.parametrize("kind", KEPT)
def test_one_event_for_each_keeps_the_label(kind: str) -> None:
    plan = getattr(stream(), kind)("n", "s", **KEPT[kind]).plan()
    assert place(plan, "n")[:2] == ("s", "1")


@pytest.mark.parametrize("kind", CHANGED)
def test_any_other_node_makes_a_label(kind: str) -> None:
    keys, cardinality = CHANGED[kind]
    plan = getattr(stream(), kind)("n", "s", **keys).plan()
    assert place(plan, "n")[:2] == ("n", cardinality)


def test_a_declared_cardinality_decides() -> None:
    flow = stream().sql("q", "s", query="select my_udf(a) as a from s", cardinality=1)
    flow = flow.function("f", "s", call="m:f", schema="x int", cardinality="2")
    plan = flow.filter("third", "s", where="a", cardinality="1/3").plan()
    assert place(plan, "q")[:2] == ("s", "1")
    assert place(plan, "f")[:2] == ("f", "2")
    assert place(plan, "third")[:2] == ("third", "1/3")
    assert "1/3 (declared)" in plan.to_text()


def test_a_clocked_join_that_keeps_all_events_has_the_label_of_its_clock() -> None:
    flow = stream().filter("f", "s", where="a").join("j", ["s", "f"], policy="latest")
    flow = flow.join("k", ["s", "f"], policy="latest", how="left_outer")
    plan = flow.function("g", ["s", "k"], call="m:f", schema="x int").plan()
    assert (place(plan, "j")[:2], place(plan, "k")[:2]) == (("j", "<1"), ("s", "1"))
    assert plan.deployable  # s and k have one event each


def test_an_sql_takes_several_labels_and_a_function_does_not() -> None:
    flow = stream().filter("f", "s", where="a")
    joined = flow.sql("q", ["s", "f"], query="select * from s join f on s.a = f.a", cardinality=1)
    assert joined.plan().deployable
    assert not flow.function("g", ["s", "f"], call="m:f", schema="x int").plan().deployable


def test_failures_are_a_stream_of_their_own() -> None:
    flow = stream().service("q", "s", target="m:f", response="x int")
    plan = flow.filter("dead", "q.failures", where="attempts > 1").plan()
    (boundary,) = (b for b in plan.boundaries if b.output == "failures")
    assert (boundary.stream, str(boundary.label), boundary.stored) == (
        "x.q.failures",
        "q.failures",
        True,
    )
    mixed = flow.function("g", ["q", "q.failures"], call="m:f", schema="x int").plan()
    assert mixed.joins[0].port == "q_failures"


def test_a_runtime_can_be_forced() -> None:
    flow = stream().function("f", "s", call="m:f", schema="x int", runtime="jobs")
    flow = flow.filter("g", "f", where="x", runtime="functions").sink("out", "f", stream="out")
    plan = flow.plan()
    assert [plan.runtimes[n] for n in ("f", "g", "out")] == ["jobs", "functions", "jobs"]
    assert [u.nodes for u in plan.units if not u.idle] == [("one",), ("f", "out"), ("g",)]
