"""Compositions: unchangeable, changed by making others, compared node by node."""

from __future__ import annotations

import pickle

import pytest

from headwater.compose import Composition, CompositionError, difference
from headwater.compose.kinds import Filter, Sink
from headwater.errors import FlowError, UnknownName
from tests.compose.figures import WEATHER


def flow() -> Composition:
    return Composition.parse(WEATHER)


def test_a_change_makes_another_composition() -> None:
    before = flow()
    stronger = before.replace("strong", Filter(inputs="storms", where="cells > 9"))
    assert before["strong"] != stronger["strong"]
    assert before == flow()
    assert list(stronger) == list(before)
    with pytest.raises((AttributeError, TypeError)):
        before["radar"].stream = "other"  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        before.nodes["x"] = before["radar"]  # type: ignore[index]


def test_names_are_new_where_added_and_there_where_changed() -> None:
    with pytest.raises(CompositionError, match="there is a filter of this name already"):
        flow().filter("evansville", "radar", where="x")
    with pytest.raises(UnknownName, match="no node 'evansvile'; did you mean 'evansville'"):
        flow().remove("evansvile")
    with pytest.raises(CompositionError, match="can't be a node's name"):
        flow().filter("2nd", "radar", where="x")


def test_what_reads_a_removed_node_is_told_by_the_rules() -> None:
    (found,) = flow().remove("evansville").check()
    assert (found.rule, found.node, found.port) == ("unknown-node", "indiana", "evansville")


def test_the_difference_is_what_a_hot_change_does() -> None:
    before = flow()
    after = (
        before.remove("rate")
        .replace("strong", Filter(inputs="storms", where="cells > 3"))
        .replace("alerts", Sink(inputs="strong", stream="warnings"))
        .filter("calm", "storms", where="cells = 0")
    )
    found = difference(before, after)
    assert found.added == ("calm",)
    assert dict(found.changed) == {"strong": ("kind",), "alerts": ("stream",)}
    assert found.removed == ("rate",)
    assert found.touched == {"calm", "strong", "alerts", "rate"}
    assert str(found) == "+ calm\n~ strong: kind\n~ alerts: stream\n- rate"
    assert not difference(after, after)


def test_the_order_of_columns_is_a_difference() -> None:
    def made(*names: str) -> Composition:
        return Composition("x").map("m", "s", columns=dict.fromkeys(names, "1"))

    assert dict(difference(made("a", "b"), made("b", "a")).changed) == {"m": ("columns",)}


def test_a_function_may_be_given_itself_where_it_can_be_imported() -> None:
    made = Composition("x").function("f", "s", call=pickle.dumps, schema="a int")
    assert made["f"].call == "_pickle:dumps"  # type: ignore[attr-defined]
    with pytest.raises(CompositionError, match="node 'f': call is a function that can be imported"):
        Composition("x").function("f", "s", call=lambda row: row, schema="a int")


def test_an_error_is_a_flow_error_and_travels() -> None:
    with pytest.raises(FlowError) as caught:
        Composition("x").join("j", ["a", "b"], policy="last", left=0)
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.violations == caught.value.violations
    assert pickle.loads(pickle.dumps(flow())) == flow()
