"""The comparison itself: it accepts every survivor Spark may keep, and no wrong set."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headwater.flow import nodes
from headwater.testing import Input, interpret
from tests.random_flows.comparing import compare
from tests.random_flows.running import Actual
from tests.random_flows.values import plain
from tests.testing.tables import COUNT, aggregate, call, col, named, parse, source, window

DATA = parse("""
    0 a 1 1 0 5
    0 a 2 2 0 6
    0 a 3 3 1 6
    1 a 4 4 2 7
    1 a 5 5 2 7
    1 a 6 6 2 8
""")
GIVEN = Input([*DATA, {}], [0, 0, 2_000_000_000_000], {})


def sink() -> nodes.Sink:
    """The number and the sum of the first rows of each key, in windows."""
    first = nodes.Deduplicate(step="first", inputs=(source(),), columns=("k",))
    columns = (COUNT, named(call("sum", col("v")), "total"))
    return nodes.Sink(
        step="out", inputs=(aggregate(first, over=window("ts", 10), columns=columns),)
    )


def kept(**choice: int) -> list[Actual]:
    """What the store would have if Spark kept other rows."""

    def choose(place: str, batch: int, key: tuple[Any, ...], rows: Any) -> int:
        return choice.get(f"k{key[0]}", 0)

    return [
        Actual(plain(r.values), r.event_time, r.provenance)
        for r in interpret(sink(), GIVEN, choose=choose)
    ]


@pytest.mark.parametrize("k0", [0, 1])
@pytest.mark.parametrize("k2", [0, 1, 2])
def test_every_admissible_survivor_is_accepted(k0: int, k2: int) -> None:
    assert compare(sink(), GIVEN, kept(k0=k0, k2=k2)).text == ""


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda ids: ids | {("a", 2)}, "a witness that did not survive"),
        (lambda ids: ids - {("a", 3)}, "a record is missing"),
        (lambda ids: ids | {("a", 9)}, "a record that never was"),
        (lambda ids: ids - {("a", 4)} | {("a", 6)}, "a survivor that the values contradict"),
    ],
)
def test_no_wrong_set_is_accepted(change: Any, why: str) -> None:
    (right,) = kept()
    wrong = replace(right, provenance=frozenset(change(right.provenance)))
    assert "only the store" in compare(sink(), GIVEN, [wrong]).text, why


def test_wrong_values_times_and_numbers_are_refused() -> None:
    (right,) = kept()
    assert compare(sink(), GIVEN, []).text
    assert compare(sink(), GIVEN, [right, right]).text
    assert compare(sink(), GIVEN, [replace(right, values=(*right.values[:-1], 1))]).text
    assert compare(sink(), GIVEN, [replace(right, event_time=None)]).text


def test_without_provenance_only_values_count() -> None:
    bare = [replace(a, provenance=frozenset(), event_time=None) for a in kept(k0=1, k2=2)]
    assert compare(sink(), GIVEN, bare, traced=False).text == ""
    wrong = [replace(a, values=(*a.values[:-1], 1)) for a in bare]
    assert compare(sink(), GIVEN, wrong, traced=False).text
