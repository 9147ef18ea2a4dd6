"""Networks: rates that pass on, bottlenecks, what is not known."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import FlowError, UnknownName
from headwater.sustain import Station, Steady, forecast
from headwater.sustain.flows import forecast_of
from tests.compose.figures import WEATHER

CASCADE = (
    Station("source"),
    Station("a", ("source",), service=0.1),
    Station("b", ("a",), cardinality=0.5, service=0.1),
    Station("c", ("b",), service=0.1, slots=2),
    Station("d", ("a",), cardinality=3, service=0.01),
    Station("g", ("c", "d"), service=0.02),
)


def test_jackson_each_node_is_a_queue_by_itself() -> None:
    """Figure 71's shape: two branches of one source, merged again."""
    made = forecast(CASCADE, {"source": 4})
    arrivals = [each.arrivals for each in made.forecasts]
    assert arrivals == [4, 4, 4, 2, 4, 2 + 12]
    for station, each in zip(CASCADE[1:], made.forecasts[1:], strict=True):
        alone = Steady(each.arrivals or 0, station.service or 0, station.slots)
        assert (each.waiting, each.time) == (alone.waiting, alone.time)
    assert made.outlook == "sustainable"
    assert (made.bottleneck, made.factor) == ("a", pytest.approx(2.5))


@settings(deadline=None)
@given(rate=st.floats(0.01, 100))
def test_the_largest_rate_is_where_it_turns(rate: float) -> None:
    largest = forecast(CASCADE, {"source": rate}).largest["source"]
    assert forecast(CASCADE, {"source": largest * 0.999}).outlook == "sustainable"
    assert forecast(CASCADE, {"source": largest * 1.001}).outlook == "unsustainable"


def test_the_largest_rate_of_one_source_leaves_room_for_the_other() -> None:
    nodes = [Station("x"), Station("y"), Station("m", ("x", "y"), service=0.1)]
    assert forecast(nodes, {"x": 4, "y": 2}).largest == {"x": 8.0, "y": 6.0}


def test_a_node_that_cant_keep_up() -> None:
    made = forecast([Station("s"), Station("n", ("s",), service=2.0)], {"s": 1})
    node = made.forecasts[1]
    assert (node.outlook, node.utilisation, node.waiting) == ("unsustainable", 2.0, math.inf)
    assert made.outlook == "unsustainable"


def test_what_is_not_known_is_said() -> None:
    nodes = [
        Station("s"),
        Station("silent", ("s",)),
        Station("windows", ("silent",), cardinality=None),
        Station("after", ("windows",), service=1.0),
    ]
    made = forecast(nodes, {"s": 1})
    assert [each.outlook for each in made.forecasts] == ["sustainable", *["unknown"] * 3]
    assert made.forecasts[1].reason == "its service time is not known"
    assert made.forecasts[3].reason == "the cardinality of a node before it is not known"
    assert made.outlook == "unknown"
    assert made.unmeasured == ("silent", "windows")
    told = forecast(nodes, {"s": 1, "windows": 0.5})
    assert told.forecasts[3].utilisation == 0.5
    assert forecast(nodes, {}).forecasts[1].reason == "the rate of s is not given"


def test_a_bound_can_clear_a_node_but_not_condemn_it() -> None:
    nodes = [Station("s"), Station("f", ("s",), exact=False), Station("n", ("f",), service=0.5)]
    assert forecast(nodes, {"s": 1}).forecasts[2].outlook == "sustainable"
    over = forecast(nodes, {"s": 4}).forecasts[2]
    assert (over.outlook, over.exact) == ("unknown", False)


def test_a_flow_file() -> None:
    from headwater.compose import Composition

    flow = Composition.parse(WEATHER)
    made = forecast_of(
        flow,
        rates={"radar": 5},
        service={"storms": 0.2, "forecast": 30},
        slots={"storms": 4},
        cardinality={"indianapolis": 0.1, "evansville": 0.1, "strong": 0.05},
    )
    found = {each.node: each for each in made.forecasts}
    assert found["storms"].arrivals == pytest.approx(1.0)
    assert found["forecast"].utilisation == pytest.approx(0.05 * 30 / 2)
    assert found["forecast"].slots == 2
    assert made.bottleneck == "forecast"
    assert made.largest == {"radar": pytest.approx(5 / 0.75)}
    with pytest.raises(UnknownName, match="no node 'rader'; it has radar"):
        forecast_of(flow, rates={"rader": 1})
    with pytest.raises(FlowError, match="rate -1"):
        forecast_of(flow, rates={"radar": -1})


def test_windows_of_time_have_their_own_pace() -> None:
    from headwater.compose import Composition

    flow = Composition("w").source("s", stream="s", rate=100.0)
    flow = flow.aggregate(
        "a", "s", window={"time": "10 minutes", "slide": "20 seconds"}, columns={"n": "count(*)"}
    )
    flow = flow.job("j", "a", run="true", takes=30.0, slots=2)
    made = forecast_of(flow).forecasts
    assert (made[-1].arrivals, made[-1].utilisation) == (0.05, 0.75)
    by_count = flow.replace(
        "j", type(flow["j"])(inputs=("s",), run="true", per={"count": 50}, takes=1.5, slots=4)
    )
    told = forecast_of(by_count).forecasts[-1]
    assert (told.arrivals, told.tasks, told.utilisation) == (100.0, 2.0, 0.75)


def test_events_of_one_label_at_two_ports_are_taken_together() -> None:
    from headwater.compose import Composition

    flow = Composition("w").source("s", stream="s", rate=8.0)
    for name, inputs in (("a", "s"), ("b", "s"), ("c", ["a", "b"])):
        flow = flow.function(name, inputs, call="m:f", schema="x bigint", takes="100 milliseconds")
    assert [each.arrivals for each in forecast_of(flow).forecasts] == [8.0] * 4
