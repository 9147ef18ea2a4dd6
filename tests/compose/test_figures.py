"""The examples of Streamflow: the labels, partitions and joins that its text gives them."""

from __future__ import annotations

from headwater.compose import Composition, Plan
from tests.compose.figures import (
    WEATHER,
    figure_9,
    figure_12,
    figure_17,
    figure_21,
    figure_31,
    service,
)


def labels(plan: Plan) -> dict[str, str]:
    return {name: str(label) for name, label in plan.labels.items()}


def sets(plan: Plan) -> dict[frozenset[str], str]:
    """The nodes of each sub-flow with its runtime."""
    return {frozenset(each.nodes): each.runtime for each in plan.subflows}


def test_figure_9_streams_of_different_cardinality_in_one_flow() -> None:
    flow = figure_9()
    plan = flow.plan()
    assert flow.check() == ()
    assert labels(plan) == {
        "V1": "V1",
        "d": "static",
        "V2": "V1",  # one answer for each event, d repeated
        "V3": "V3",
        "V4": "V4",
        "V5": "V5",
        "out": "V5",
    }
    assert {n: str(c) for n, c in plan.cardinalities.items()} == {
        "V2": "1",
        "V3": "<1",
        "V4": "1/5",
        "V5": "<1",
    }
    assert sets(plan) == {
        frozenset({"V1"}): "operators",
        frozenset({"d"}): "static",
        frozenset({"V2"}): "functions",
        frozenset({"V3"}): "operators",
        frozenset({"V4"}): "operators",
        frozenset({"V5", "out"}): "operators",
    }


def test_figure_12_a_workflow_runs_once_until_a_stream_comes_in() -> None:
    pure = figure_12(streaming=False).plan()
    assert set(labels(pure).values()) == {"static"}
    assert sets(pure) == {frozenset({"input", "first", "second", "third"}): "static"}

    streaming = figure_12(streaming=True).plan()
    assert set(labels(streaming).values()) == {"input"}
    assert sets(streaming) == {
        frozenset({"input"}): "operators",
        frozenset({"first", "second", "third", "out"}): "functions",
    }
    # The stream is there already: the workflow behind it is all that is deployed.
    assert [unit.nodes for unit in streaming.units if not unit.idle] == [
        ("first", "second", "third", "out")
    ]


def test_figure_17_sub_workflows_by_cardinality() -> None:
    flow = figure_17()
    plan = flow.plan()
    found = sets(plan)
    assert found[frozenset({"input_1", "input_2", "n1", "n2", "n3", "n4"})] == "static"
    assert found[frozenset({"n5", "n6", "n7", "n8", "n9"})] == "functions"
    assert found[frozenset({"n10"})] == "operators"
    assert found[frozenset({"n11", "n12", "n13"})] == "functions"
    assert found[frozenset({"events"})] == "operators"
    assert len(found) == 5
    # Two of the three inputs of workflow 3 have one rate, the third another.
    (join,) = plan.joins
    assert join.node == "n11"
    assert {p: str(x) for p, x in join.ports.items()} == {
        "n8": "events",
        "n9": "events",
        "n10": "n10",
    }
    assert not plan.deployable
    (violation,) = flow.check()
    assert (violation.rule, violation.node, violation.port) == ("join-required", "n11", "n10")


def test_figure_17_each_policy_that_the_error_names_resolves_it() -> None:
    (join,) = figure_17().plan().joins
    assert list(join.choices) == ["latest-of-slower", "drop-to-slower", "window"]
    clocks = []
    for policy, text in join.choices.items():
        written = Composition.parse(f"flow: x\nnodes:\n  {text}\n")
        node = written["n11_input"]
        flow = figure_17().remove("n11").add("n11_input", node)
        flow = service(flow, "n11", "n11_input")
        assert flow.check() == (), policy
        assert flow.plan().deployable
        clocks.append(getattr(node, "clock", None))
    assert clocks == ["n8", "n10", None]  # the faster's events, the slower's, none


def test_figure_18_a_service_that_becomes_a_filter_splits_what_was_one() -> None:
    whole = figure_17(ten="service").plan()
    nodes = frozenset({f"n{number}" for number in range(5, 14)})
    assert sets(whole)[nodes] == "functions"
    assert whole.joins == ()

    split = figure_17(ten="filter").plan()
    assert nodes not in sets(split)
    assert [join.node for join in split.joins] == ["n11"]


def test_figure_21_a_join_is_demanded_where_workflows_meet() -> None:
    missing = figure_21(joined=False).plan()
    assert [join.node for join in missing.joins] == ["wf3"]

    plan = figure_21(joined=True).plan()
    assert plan.deployable
    found = sets(plan)
    # Both outputs of a workflow come at the same time, under one label, from one stream.
    assert labels(plan)["p11"] == labels(plan)["p12"] == "both_1"
    assert labels(plan)["p21"] == labels(plan)["p22"] == "both_2"
    assert found[frozenset({"query_1"})] == "operators"
    assert found[frozenset({"wf3", "wf3_next"})] == "functions"
    joined = next(b for b in plan.boundaries if b.node == "query_1")
    assert (joined.stream, joined.stored) == ("figure-21.query_1", True)


def test_figure_31_the_weather_flow_uses_all_three_runtimes() -> None:
    flow = figure_31()
    plan = flow.plan()
    assert flow.check() == ()
    units = {frozenset(unit.nodes): unit.runtime for unit in plan.units}
    stations = {"radar", "Indianapolis", "Evensville", "FortWayne", "IndianaRadar"}
    assert units == {
        frozenset(stations): "operators",  # reducible to one query
        frozenset({"findStorm20", "cluster20"}): "functions",
        frozenset({"findStorm35", "cluster35"}): "functions",
        frozenset({"IndianaStorm20dB"}): "operators",
        frozenset({"IndianaStorm35dB"}): "operators",
        frozenset({"mail20"}): "functions",
        frozenset({"mail35"}): "functions",
        frozenset({"WRF"}): "jobs",  # forced
    }
    # The two workflows run for each event of one stream: one label.
    assert labels(plan)["cluster20"] == labels(plan)["cluster35"] == "IndianaRadar"


def test_the_example_of_the_design_reads_as_it_stands() -> None:
    flow = Composition.parse(WEATHER)
    assert flow.check() == ()
    plan = flow.plan()
    assert labels(plan) == {
        "radar": "radar",
        "indianapolis": "indianapolis",
        "evansville": "evansville",
        "indiana": "indiana",
        "storms": "indiana",
        "rate": "rate",
        "strong": "strong",
        "forecast": "strong",
        "alerts": "strong",
    }
    assert [unit.nodes for unit in plan.units] == [
        ("radar", "indianapolis", "evansville", "indiana"),
        ("storms",),
        ("rate",),
        ("strong", "alerts"),
        ("forecast",),
    ]
    stored = {b.stream: (b.start, b.ends) for b in plan.boundaries if b.stored}
    assert stored == {
        "weather.indiana": (4, (5,)),
        "weather.storms": (5, (6, 7)),
        "weather.rate": (6, ()),
        "weather.strong": (7, (8,)),
        "weather.forecast": (8, ()),
        "alerts": (7, ()),
    }
