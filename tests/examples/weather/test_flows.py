"""The flow files: labels, sub-flows, units and runtimes as Streamflow's text gives them."""

from __future__ import annotations

import importlib.util
import inspect
import shlex
from importlib import import_module

import pytest

from headwater.compose import Composition, Plan
from headwater.compose.kinds import Filter, Function, Job, Sink, Source
from headwater.errors import HeadwaterError
from headwater.examples.weather import FLOWS, flow_file
from headwater.examples.weather.forecast import FORECAST
from headwater.examples.weather.radar import METADATA, SCHEMA
from headwater.examples.weather.stations import INDIANA
from headwater.examples.weather.storms import FOUND, STORMS

STATIONS = tuple(INDIANA)


def read(name: str) -> Composition:
    return Composition.read(flow_file(name))


def labels(plan: Plan) -> dict[str, str]:
    return {name: str(label) for name, label in plan.labels.items()}


def units(plan: Plan) -> dict[tuple[str, ...], str]:
    return {unit.nodes: unit.runtime for unit in plan.units}


@pytest.mark.parametrize("name", FLOWS)
def test_no_rule_is_broken_and_nothing_is_missing(name: str) -> None:
    flow = read(name)
    assert flow.check() == ()
    assert flow.plan().deployable
    assert flow.name == name
    assert Composition.parse(flow.to_yaml()) == flow


def test_there_are_no_other_flows() -> None:
    assert {file.stem for file in flow_file("weather").parent.glob("*.yaml")} == set(FLOWS)
    with pytest.raises(HeadwaterError, match="no flow of this example is called 'rain'"):
        flow_file("rain")


@pytest.mark.parametrize("name", FLOWS)
def test_the_functions_that_are_called_take_what_is_given(name: str) -> None:
    for node in read(name).nodes.values():
        if isinstance(node, Function):
            module, _, function = node.call.partition(":")
            called = getattr(import_module(module), function)
            inspect.signature(called).bind("a batch", **dict(node.static))
        if isinstance(node, Job):
            python, option, module = shlex.split(node.run or "")[:3]
            assert (python, option) == ("python", "-m")
            assert importlib.util.find_spec(module)


@pytest.mark.parametrize("name", ["weather", "storms"])
def test_each_station_is_selected_by_its_files(name: str) -> None:
    nodes = read(name).nodes
    for city, station in INDIANA.items():
        node = nodes[city]
        assert isinstance(node, Filter)
        assert node.where == f"file rlike 'Level2_{station}_'"


def test_the_schemas_are_those_of_the_code() -> None:
    for name, schema in (("weather", SCHEMA), ("storms", METADATA)):
        nodes = read(name).nodes
        source = nodes["radar"]
        assert isinstance(source, Source)
        assert source.schema == schema
        for level in ("20", "35"):
            find, cluster = nodes[f"find{level}"], nodes[f"cluster{level}"]
            assert isinstance(find, Function)
            assert isinstance(cluster, Function)
            assert (find.schema, cluster.schema) == (FOUND, STORMS)
            assert dict(find.static) == {"level": int(level)}
    for name in ("weather", "forecasts"):
        job = read(name).nodes["forecast"]
        assert isinstance(job, Job)
        assert job.schema == FORECAST


def test_the_weather_flow_uses_all_three_runtimes() -> None:
    plan = read("weather").plan()
    assert units(plan) == {
        ("radar", *STATIONS, "indiana"): "operators",  # reducible to one query
        ("find20", "cluster20"): "functions",
        ("find35", "cluster35"): "functions",
        ("light",): "operators",
        ("severe", "warning"): "operators",
        ("light_alert",): "functions",
        ("severe_alert",): "functions",
        ("forecast", "forecasts"): "jobs",
    }
    assert labels(plan) == {
        "radar": "radar",
        **{station: station for station in STATIONS},
        "indiana": "indiana",
        # Both workflows are one to one: the label of what they read, a sub-flow each.
        **dict.fromkeys(("find20", "cluster20", "find35", "cluster35"), "indiana"),
        **dict.fromkeys(("light", "light_alert"), "light"),
        **dict.fromkeys(("severe", "warning", "severe_alert", "forecast", "forecasts"), "severe"),
    }
    subflows = [set(each.nodes) for each in plan.subflows]
    assert {"find20", "cluster20"} in subflows
    assert {"find35", "cluster35"} in subflows
    assert len(subflows) == 12
    assert {str(plan.cardinalities[name]) for name in (*STATIONS, "light", "severe")} == {"<1"}


def test_two_flows_are_coupled_by_a_named_stream() -> None:
    """Phases one and two publish what phase three reads: Figures 35 and 36."""
    first, second = read("storms"), read("forecasts")
    sink, source = first.nodes["published"], second.nodes["storms"]
    assert isinstance(sink, Sink)
    assert isinstance(source, Source)
    assert sink.stream == source.stream == "IndianaStorm35dB"
    (stored,) = [b for b in first.plan().boundaries if b.stream == "IndianaStorm35dB"]
    assert stored.stored
    assert source.schema == f"{METADATA}, {STORMS}"
    assert units(first.plan()) == {
        ("radar", *STATIONS, "indiana"): "operators",
        ("find20", "cluster20"): "functions",
        ("find35", "cluster35"): "functions",
        ("storm20",): "operators",
        ("storm35", "published"): "operators",
        ("mail20",): "functions",
        ("mail35",): "functions",
    }
    assert units(second.plan()) == {
        ("storms",): "operators",
        ("forecast", "forecasts"): "jobs",
    }
    (idle,) = [unit.nodes for unit in second.plan().units if unit.idle]
    assert idle == ("storms",)


def test_the_cascade_has_six_workflows_in_two_rows_and_a_join() -> None:
    plan = read("cascade").plan()
    workflows = {each.nodes: each.runtime for each in plan.subflows if each.nodes[0] in "ABCDEF"}
    assert workflows == {(name,): "functions" for name in "ABCDEF"}
    assert labels(plan) == {
        **dict.fromkeys(("events", "A", "D"), "events"),
        **dict.fromkeys(("A_B", "B"), "A_B"),
        **dict.fromkeys(("B_C", "C"), "B_C"),
        **dict.fromkeys(("D_E", "E"), "D_E"),
        **dict.fromkeys(("E_F", "F"), "E_F"),
        **dict.fromkeys(("G", "solved"), "G"),
    }
    reads = {b.node: b.ends for b in plan.boundaries if b.node in ("events", "C", "F")}
    number = {each.nodes[0]: each.number for each in plan.subflows}
    assert reads == {
        "events": (number["A"], number["D"]),
        "C": (number["G"],),
        "F": (number["G"],),
    }
