"""Figure 14 at a small size, and the published algorithms that it compares with."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.bench import disorder
from headwater.bench.disorder import Stream, accuracy
from headwater.bench.prov_algorithms import Algorithm1, DependencyMatrix, Edge
from headwater.bench.report import Row, Table
from headwater.testing.prov_graphs import (
    Element,
    block,
    dependencies,
    disordered,
    groups,
    vertex_id,
)
from headwater.testing.prov_strategies import jobs
from tests.support import amount


def edges(told: list[Element]) -> list[Edge]:
    one = block(told)
    return list(zip(one.source.tolist(), one.destination.tolist(), strict=True))


def numbers(pairs: set[tuple[str, str]]) -> set[Edge]:
    return {(vertex_id(("entity", a)), vertex_id(("entity", b))) for a, b in pairs}


def unmarked(told: list[Element]) -> list[Element]:
    """The published algorithms know no outputs that go on being used."""
    return [replace(element, output=False) for element in told]


def alone(told: list[Element], window: int = 0) -> set[Edge]:
    reducer = Algorithm1(window)
    for edge in edges(told):
        reducer.add([edge])
    return reducer.pairs()


FORK = [
    Element("used", "f", "i", execution="f"),
    Element("wasGeneratedBy", "o1", "f", execution="f"),
    Element("wasGeneratedBy", "o2", "f", execution="f"),
]


class TestAlgorithm1:
    def test_reduction_through_the_source_of_a_new_edge(self) -> None:
        """Figure 7."""
        reducer = Algorithm1()
        for group in ([(1, 3)], [(2, 3)], [(3, 4)]):
            reducer.add(group)
        assert reducer.pairs() == {(1, 4), (2, 4)}

    def test_reduction_goes_on_through_both_ends(self) -> None:
        reducer = Algorithm1()
        for group in ([(1, 2)], [(3, 4)], [(5, 6)], [(2, 3)], [(4, 5)]):
            reducer.add(group)
        assert reducer.pairs() == {(1, 6)}

    def test_early_elimination_and_what_helps(self) -> None:
        """Figure 11: alone the second output is lost; a group or a window finds it."""
        both = numbers({("o1", "i"), ("o2", "i")})
        assert both - alone(FORK) == numbers({("o2", "i")})
        assert alone(FORK, window=2) >= both
        reducer = Algorithm1()
        for group in groups(FORK):
            reducer.add(edges(group))
        assert reducer.pairs() == both

    def test_an_intermediate_used_twice_is_lost_in_groups(self) -> None:
        """What the paper's way can't do; Headwater's grouping can."""
        told = list(FORK)
        for execution, output in (("g", "p"), ("h", "q")):
            told.append(Element("used", execution, "o1", execution=execution))
            told.append(Element("wasGeneratedBy", output, execution, execution=execution))
        reducer = Algorithm1()
        for group in groups(told):
            reducer.add(edges(group))
        missed = numbers(dependencies(told)) - reducer.pairs()
        assert missed == numbers({("q", "i")})

    @settings(max_examples=amount(60, 600), deadline=None)
    @given(jobs(), st.randoms(use_true_random=False))
    def test_with_everything_in_the_window_nothing_is_lost(
        self, told: list[Element], random: Random
    ) -> None:
        stream = disordered(unmarked(told), 50, random)
        assert alone(stream, window=1_000) >= numbers(dependencies(stream))


class TestDependencyMatrix:
    @settings(max_examples=amount(60, 600), deadline=None)
    @given(jobs())
    def test_in_order_it_is_exact(self, told: list[Element]) -> None:
        stream = unmarked(told)
        matrix = DependencyMatrix()
        matrix.add(edges(stream))
        used = {element.edge[1] for element in stream}
        outputs = {vertex_id(e.edge[0]) for e in stream if e.edge[0] not in used}
        found = {(a, b) for a, b in matrix.pairs() if a in outputs and not (a | b) & 1}
        truth = numbers(dependencies(stream))
        inputs = {cause for _, cause in truth}
        assert {(a, b) for a, b in found if b in inputs} == truth

    def test_out_of_order_it_is_not(self) -> None:
        matrix = DependencyMatrix()
        matrix.add([(1, 2), (2, 3)])
        assert matrix.pairs() == {(1, 2), (2, 3)}


class TestStream:
    @settings(max_examples=amount(60, 600), deadline=None)
    @given(jobs())
    def test_the_truth_is_the_oracles(self, told: list[Element]) -> None:
        stream = Stream.of(block(unmarked(told)))
        assert stream.true == numbers(dependencies(unmarked(told)))

    def test_groups_are_what_was_used_and_what_was_generated(self) -> None:
        told = [FORK[0], Element("used", "g", "i", execution="g"), *FORK[1:]]
        messages = Stream.of(block(told)).messages("groups")
        assert [message.tolist() for message in messages] == [[0], [1], [2, 3]]
        assert [[told.index(e) for e in group] for group in groups(told)] == [[0], [1], [2, 3]]

    def test_a_found_activity_is_no_dependency(self) -> None:
        found = {(2, 10), (2, 11), (3, 10), (4, 12)}
        assert accuracy(found, frozenset({(2, 10), (4, 10)})) == {
            "accuracy": 50.0,
            "backward": 50.0,
            "forward": 0.0,
            "wrong": 50.0,
        }


@pytest.fixture(scope="module")
def table() -> Table:
    """The figure, small."""
    return disorder.measure(edges=2_500, levels=(0, 20, 50), windows=(50, 5_000), delays=(None,))


class TestFigure14:
    def test_every_algorithm_is_there(self, table: Table) -> None:
        assert [(row["algorithm"], row["sent as"]) for row in table.rows] == [
            ("grouping, Headwater", "elements"),
            ("grouping, Algorithm 1", "groups"),
            ("Algorithm 1 alone", "elements"),
            ("window 50, Headwater", "elements"),
            ("window 50, Algorithm 1", "elements"),
            ("window 5,000, Headwater", "elements"),
            ("window 5,000, Algorithm 1", "elements"),
            ("dependency matrix", "elements"),
        ]
        assert all(len(cells) == len(table.columns) for cells in table.cells())

    def test_grouping_is_exact_in_any_order(self, table: Table) -> None:
        for name in ("grouping, Headwater", "grouping, Algorithm 1"):
            row = _row(table, name)
            assert [row[f"{level} %"] for level in (0, 20, 50)] == [100, 100, 100]
            assert row["wrong, 50 %"] == 0

    def test_a_window_is_exact_in_order_and_loses_with_disorder(self, table: Table) -> None:
        for name in ("window 50, Headwater", "window 50, Algorithm 1", "dependency matrix"):
            row = _row(table, name)
            assert row["0 %"] == 100
            assert 100 > row["20 %"] > row["50 %"]
        row = _row(table, "window 5,000, Headwater")
        assert [row[f"{level} %"] for level in (0, 20, 50)] == [100, 100, 100]

    def test_headwaters_window_finds_what_the_papers_does_and_nothing_wrong(
        self, table: Table
    ) -> None:
        ours, papers = (_row(table, f"window 50, {who}") for who in ("Headwater", "Algorithm 1"))
        assert ours["50 %"] == pytest.approx(papers["50 %"], abs=2)
        assert ours["wrong, 50 %"] == 0 < papers["wrong, 50 %"]


def _row(table: Table, name: str) -> Row:
    return next(row for row in table.rows if row["algorithm"] == name)
