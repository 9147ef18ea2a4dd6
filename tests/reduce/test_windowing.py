"""The sliding window: exact while all is in it, never wrong about what it finds, and small."""

from __future__ import annotations

import time
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.reduce.blocks import Block
from headwater.reduce.contraction import Reduced, contract
from headwater.reduce.windowing import SlidingWindow
from headwater.testing.prov_graphs import (
    Element,
    block,
    closure,
    completed,
    dependencies,
    disordered,
    duplicated,
    vertex_id,
)
from headwater.testing.prov_strategies import cyclic_jobs, jobs
from tests.reduce.test_blocks import assert_same, rows
from tests.support import amount

ALL = 10_000


def reduced(told: list[Element], size: int) -> Block:
    return SlidingWindow.start(size).add(block(told)).hot


def named(one: Block) -> set[tuple[str, str]]:
    names = dict(zip(one.ids.tolist(), one.names.to_pylist(), strict=True))
    edges = zip(one.source.tolist(), one.destination.tolist(), strict=True)
    return {(names[source], names[destination]) for source, destination in edges}


def chopped(told: list[Element], size: int) -> list[list[Element]]:
    return [told[at : at + size] for at in range(0, len(told), size)]


randoms = st.randoms(use_true_random=False)


class TestExactness:
    @settings(max_examples=amount(100, 500), deadline=None)
    @given(jobs(), randoms, st.sampled_from([0, 30, 100]))
    def test_while_all_is_in_the_window_it_is_a_contraction(
        self, told: list[Element], random: Random, percent: int
    ) -> None:
        stream = duplicated(disordered(told, percent, random), 10, random)
        whole = contract(block(stream), budget=ALL).hot
        mine = reduced(stream, ALL)
        assert rows(mine) == rows(whole)
        assert mine.ids.tolist() == whole.ids.tolist()
        assert mine.names.equals(whole.names)
        assert (mine.kept.tolist(), mine.elements) == (whole.kept.tolist(), len(stream))

    @settings(max_examples=amount(100, 500), deadline=None)
    @given(st.one_of(jobs(), cyclic_jobs()), randoms, st.integers(0, 10))
    def test_what_a_small_window_finds_is_true(
        self, told: list[Element], random: Random, size: int
    ) -> None:
        stream = disordered(told, 50, random)
        below = closure(element.edge for element in told)
        numbers = {vertex_id(v): v for element in told for v in element.edge}
        found = reduced(stream, size)
        for effect, cause in zip(found.source.tolist(), found.destination.tolist(), strict=True):
            assert numbers[cause] in below[numbers[effect]]

    @settings(max_examples=amount(100, 500), deadline=None)
    @given(jobs(), randoms, st.integers(0, 8), st.integers(1, 7))
    def test_cuts_and_bytes_change_nothing(
        self, told: list[Element], random: Random, size: int, cut: int
    ) -> None:
        stream = [e for e in disordered(told, 30, random) if not e.output]
        state = SlidingWindow.start(size)
        for part in chopped(stream, cut):
            state = SlidingWindow.from_bytes(state.add(block(part)).to_bytes())
        whole = SlidingWindow.start(size).add(block(stream))
        assert rows(state.hot) == rows(whole.hot)
        assert rows(state.recent) == rows(whole.recent)
        assert state.gone.tolist() == whole.gone.tolist()
        assert named(state.hot) == named(whole.hot)
        assert len(state.recent) <= size
        seen = {*state.recent.source.tolist(), *state.recent.destination.tolist()}
        assert seen.issuperset(state.gone.tolist())
        assert state.hot.elements == len(stream)

    @settings(max_examples=amount(100, 500), deadline=None)
    @given(jobs(), randoms, st.integers(1, 9), st.sampled_from([0, 30, 100]))
    def test_handing_on_loses_nothing_that_the_window_has(
        self, told: list[Element], random: Random, cut: int, percent: int
    ) -> None:
        """Whoever joins what was handed on has the job's dependencies."""
        stream = duplicated(disordered(told, percent, random), 10, random)
        state = SlidingWindow.start(ALL)
        parts = []
        marked = {e.source for e in told if e.output}
        for part in chopped(stream, cut):
            first = [
                Element("wasDerivedFrom", name, "mark", output=True) for name in sorted(marked)
            ]
            handed, state = state.add(block([*(first if not parts else []), *part])).flush()
            parts.append(handed)
        whole = contract(Block.merged(parts), budget=ALL)
        expected = dependencies(told)
        assert {pair for pair in completed([whole]) if pair[1] != "mark"} == expected


FORK = [
    Element("used", "f", "i1", "map", seconds=1),
    Element("wasGeneratedBy", "o1", "f", "map", seconds=2),
    Element("wasGeneratedBy", "o2", "f", "map", seconds=3),
]
"""Figure 11: a function that uses one input and generates two outputs."""


class TestExamples:
    @pytest.mark.parametrize(
        ("size", "expected"),
        [
            (0, {("o1", "i1"), ("o2", "f")}),
            (1, {("o1", "i1"), ("o2", "f")}),
            (2, {("o1", "i1"), ("o2", "i1")}),
        ],
    )
    def test_early_elimination(self, size: int, expected: set[tuple[str, str]]) -> None:
        """The second output is found only while the window still has what the function used."""
        assert named(reduced(FORK, size)) == expected

    def test_a_vertex_that_came_back_is_joined_with_state_and_window(self) -> None:
        told = [
            Element("wasDerivedFrom", "p", "v"),
            Element("wasDerivedFrom", "v", "y"),  # v goes, and this edge soon with it
            Element("wasDerivedFrom", "p", "v"),
            Element("wasDerivedFrom", "x", "v"),
            Element("wasDerivedFrom", "v", "z"),
        ]
        found = named(reduced(told, 2))
        assert {("p", "y"), ("p", "z"), ("x", "z")} <= found

    def test_a_running_aggregate_is_kept_and_hands_on(self) -> None:
        told = [
            Element("wasDerivedFrom", "sum-1", "in-1", output=True),
            Element("wasDerivedFrom", "sum-2", "sum-1", output=True),
            Element("wasDerivedFrom", "sum-2", "in-2", output=True),
        ]
        for stream in (told, told[::-1]):
            assert named(reduced(stream, 0)) == {(e.source, e.destination) for e in told}

    def test_functions_and_times_add_up(self) -> None:
        found = reduced([*FORK, Element("wasDerivedFrom", "p", "o2", "copy")], 10)
        noted = {row[:1] + row[2:] for row in rows(found)}
        o1, p = (vertex_id(("entity", name)) for name in ("o1", "p"))
        assert noted == {
            (o1, FORK[1].micros, True, ("map",)),
            (p, FORK[2].micros, True, ("copy", "map")),
        }

    def test_what_was_handed_on_is_not_eliminated_here(self) -> None:
        """The other side has o1→f; it needs f→i1 as it was told."""
        handed, state = SlidingWindow.start(10).add(block(FORK[1:2])).flush()
        assert named(handed) == {("o1", "f")}
        handed, state = state.add(block([FORK[0], FORK[2]])).flush()
        assert named(handed) == {("f", "i1"), ("o2", "f")}
        assert len(state.hot) == 0

    def test_only_so_many_are_remembered_to_be_handed_on(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The latest; of the others it is forgotten, and the state stays small."""
        monkeypatch.setattr("headwater.reduce.windowing.REMEMBERED", 2)
        state = SlidingWindow.start(0)
        for number in range(3):
            told = [Element("wasDerivedFrom", f"e{number}", f"e{number + 1}")]
            handed, state = state.add(block(told)).flush()
            assert named(handed) == {(f"e{number}", f"e{number + 1}")}
        assert set(state.handed_on.tolist()) == {vertex_id(("entity", n)) for n in ("e2", "e3")}

    def test_nothing(self) -> None:
        state = SlidingWindow.start(5).add(Block.empty())
        assert_same(state.hot, Block.empty())
        assert_same(SlidingWindow.from_bytes(state.to_bytes()).recent, Block.empty())
        assert completed([Reduced(state.flush()[0], contract(Block.empty()).residue)]) == set()


class TestSpeed:
    @pytest.mark.parametrize("order", ["in order", "backwards", "shuffled"])
    def test_a_deep_chain(self, order: str) -> None:
        length = 5_000
        told = [Element("wasDerivedFrom", f"e{n}", f"e{n + 1}") for n in range(length)]
        if order != "in order":
            told = told[::-1] if order == "backwards" else Random(1).sample(told, length)
        given = block(told)
        start = time.perf_counter()
        found = SlidingWindow.start(1_000).add(given).hot
        assert time.perf_counter() - start < 2
        assert named(found) == {("e0", f"e{length}")}
