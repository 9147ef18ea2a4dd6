"""Contraction: what remaining vertices depend on stays as it was, and nothing told is lost."""

from __future__ import annotations

import time
from collections import defaultdict
from functools import cache
from random import Random

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.reduce.blocks import NO_TIME, Block, Ints, is_activity
from headwater.reduce.contraction import BUDGET, Reduced, contract
from headwater.reduce.cycles import on_cycles
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
from tests.support import amount

Pair = tuple[int, int]


def numbered(edges: list[tuple[int, int, int, int]], kept: list[int] | None = None) -> Block:
    """A block of (source, destination, functions, time) by number; odd ones are activities."""
    source, destination, functions, times = (
        np.array(column, np.int64) for column in (zip(*edges, strict=True) if edges else [[]] * 4)
    )
    ids = np.array(sorted({*source.tolist(), *destination.tolist(), *(kept or [])}), np.int64)
    return Block(
        source,
        destination,
        times,
        functions,
        np.zeros(len(source), bool),
        ("f", "g", "h"),
        np.array(sorted(kept or []), np.int64),
        ids,
        pa.array([f"v{number}" for number in ids.tolist()], pa.string()),
        len(source),
    )


def pairs(one: Block) -> set[Pair]:
    return set(zip(one.source.tolist(), one.destination.tolist(), strict=True))


def notes(one: Block) -> dict[Pair, tuple[int, int]]:
    """The functions and the latest time of each edge."""
    noted: dict[Pair, tuple[int, int]] = defaultdict(lambda: (0, NO_TIME))
    for edge, bits, at in zip(
        zip(one.source.tolist(), one.destination.tolist(), strict=True),
        one.functions.tolist(),
        one.time.tolist(),
        strict=True,
    ):
        noted[edge] = (noted[edge][0] | bits, max(noted[edge][1], at))
    return dict(noted)


def through(told: dict[Pair, tuple[int, int]], gone: set[int]) -> dict[Pair, tuple[int, int]]:
    """All edges and paths through eliminated vertices only, with what lies along any of them."""
    below = defaultdict(list)
    for (source, destination), note in told.items():
        below[source].append((destination, note))

    @cache
    def ends(vertex: int) -> dict[int, tuple[int, int]]:
        found: dict[int, tuple[int, int]] = defaultdict(lambda: (0, NO_TIME))
        for destination, (bits, at) in below[vertex]:
            further = ends(destination) if destination in gone else {destination: (0, NO_TIME)}
            for end, (more, later) in further.items():
                known = found[end]
                found[end] = (known[0] | bits | more, max(known[1], at, later))
        return found

    return {
        (vertex, end): note
        for vertex in list(below)
        if vertex not in gone
        for end, note in ends(vertex).items()
    }


def check(given: Block, reduced: Reduced, budget: float = BUDGET) -> set[int]:
    """All that must hold of any contraction; gives back which vertices were eliminated."""
    told, hot, residue = notes(given), reduced.hot, reduced.residue
    gone = set(residue.vertex.tolist())
    edges = set(told)
    sources, destinations = {s for s, _ in edges}, {d for _, d in edges}
    assert gone <= (sources & destinations) - set(given.kept.tolist())
    assert len(pairs(hot)) == len(hot) <= budget * len(edges)
    assert not gone & {vertex for edge in pairs(hot) for vertex in edge}

    left = (sources | destinations) - gone
    before, after = closure(edges), closure(pairs(hot))
    for vertex in left:
        assert before.get(vertex, set()) & left == after.get(vertex, set())
    assert notes(hot) == through(told, gone)
    derived = dict(zip(notes(hot), hot.derived.tolist(), strict=True))
    assert derived == {edge: edge not in edges for edge in pairs(hot)}

    loops = {edge for edge in pairs(hot) if edge[0] == edge[1]}
    assert loops == {edge for edge in edges if edge[0] == edge[1]}
    for vertex in cyclic(given):
        whole = {other for other in before[vertex] if vertex in before.get(other, ())}
        assert whole & cyclic(hot), "a cycle was lost"

    aside = set(
        zip(
            residue.vertex.tolist(),
            residue.edges.source.tolist(),
            residue.edges.destination.tolist(),
            strict=True,
        )
    )
    assert len(aside) == len(residue)
    assert aside == {(vertex, *edge) for edge in edges for vertex in set(edge) & gone}
    assert notes(residue.once()) == {edge: note for edge, note in told.items() if set(edge) & gone}
    assert pairs(hot) | pairs(residue.edges) >= edges

    named = dict(zip(given.ids.tolist(), given.names.to_pylist(), strict=True))
    for one, vertices in ((hot, left | set(given.kept.tolist())), (residue.edges, gone)):
        assert one.ids.tolist() == sorted(one.ids.tolist())
        assert dict(zip(one.ids.tolist(), one.names.to_pylist(), strict=True)) == {
            vertex: name for vertex, name in named.items() if vertex in vertices
        }
    assert hot.elements == given.elements
    assert hot.kept.tolist() == given.kept.tolist()
    assert hot.function_names == given.function_names
    return gone


def cyclic(given: Block) -> set[int]:
    return {vertex for vertex, below in closure(pairs(given)).items() if vertex in below}


def intermediates(given: Block) -> set[int]:
    """What is to be eliminated if nothing forbids it."""
    sources, destinations = set(given.source.tolist()), set(given.destination.tolist())
    return (sources & destinations) - set(given.kept.tolist()) - cyclic(given)


vertices = st.integers(0, 14)
numbered_edges = st.lists(
    st.tuples(vertices, vertices, st.integers(0, 7), st.sampled_from([NO_TIME, 1, 2, 3])),
    max_size=40,
)
acyclic_edges = numbered_edges.map(
    lambda edges: [(min(s, d), max(s, d), f, t) for s, d, f, t in edges if s != d]
)
some_kept = st.lists(vertices, max_size=3, unique=True)


class TestAnyGraph:
    @settings(max_examples=amount(300, 3000), deadline=None)
    @given(acyclic_edges, some_kept)
    def test_without_cycles_all_intermediates_go(
        self, edges: list[tuple[int, int, int, int]], kept: list[int]
    ) -> None:
        given = numbered(edges, kept)
        assert check(given, contract(given, budget=1000), 1000) == intermediates(given)

    @settings(max_examples=amount(300, 3000), deadline=None)
    @given(numbered_edges)
    def test_with_cycles_those_on_them_stay(self, edges: list[tuple[int, int, int, int]]) -> None:
        given = numbered(edges)
        assert check(given, contract(given, budget=1000), 1000) == intermediates(given)

    @settings(max_examples=amount(200, 2000), deadline=None)
    @given(acyclic_edges, some_kept, st.sampled_from([1.0, 1.2, 2.0]))
    def test_edges_stay_within_the_budget(
        self, edges: list[tuple[int, int, int, int]], kept: list[int], budget: float
    ) -> None:
        given = numbered(edges, kept)
        check(given, contract(given, budget=budget), budget)

    @settings(max_examples=amount(200, 2000), deadline=None)
    @given(numbered_edges, some_kept, st.sets(vertices))
    def test_only_what_may_go_goes(
        self, edges: list[tuple[int, int, int, int]], kept: list[int], fixed: set[int]
    ) -> None:
        given = numbered(edges, kept)

        def loose(ids: Ints) -> np.ndarray:
            return ~np.isin(ids, sorted(fixed))

        gone = check(given, contract(given, loose, 1000), 1000)
        assert intermediates(given) - fixed <= gone <= intermediates(given) | cyclic(given)
        assert not gone & fixed

    @settings(max_examples=amount(100, 1000), deadline=None)
    @given(st.one_of(jobs(), cyclic_jobs()))
    def test_jobs(self, told: list[Element]) -> None:
        given = block(told)
        check(given, contract(given, budget=1000), 1000)
        gone = check(given, contract(given, is_activity, 1000), 1000)
        assert {v for v in intermediates(given) if v & 1} <= gone
        assert all(v & 1 for v in gone)

    @settings(max_examples=amount(60, 600), deadline=None)
    @given(numbered_edges)
    def test_contracting_again_changes_nothing(
        self, edges: list[tuple[int, int, int, int]]
    ) -> None:
        once = contract(numbered(edges), budget=1000)
        again = contract(once.hot, budget=1000)
        assert notes(again.hot) == notes(once.hot)
        assert again.hot.derived.tolist() == once.hot.derived.tolist()
        assert len(again.residue) == 0


class TestManyBlocks:
    @settings(max_examples=amount(150, 1500), deadline=None)
    @given(
        jobs(), st.integers(1, 12), st.randoms(use_true_random=False), st.sampled_from([0, 50, 100])
    )
    def test_any_order_and_cut_gives_the_jobs_dependencies(
        self, told: list[Element], size: int, random: Random, percent: int
    ) -> None:
        stream = duplicated(disordered(told, percent, random), 20, random)
        batches = [stream[at : at + size] for at in range(0, len(stream), size)]
        reduced = [contract(block(batch)) for batch in batches]
        assert completed(reduced) == dependencies(told)

    @settings(max_examples=amount(60, 600), deadline=None)
    @given(cyclic_jobs(), st.integers(1, 12), st.randoms(use_true_random=False))
    def test_cycles(self, told: list[Element], size: int, random: Random) -> None:
        stream = disordered(told, 50, random)
        batches = [stream[at : at + size] for at in range(0, len(stream), size)]
        assert completed([contract(block(batch)) for batch in batches]) == dependencies(told)


class TestExamples:
    def test_the_papers_hashtag_job(self) -> None:
        """Figure 3: two tweets, five pairs, three counts."""
        told = [
            Element("used", "M1", "tweet-1", "map"),
            *(Element("wasGeneratedBy", f"{tag}:1 of M1", "M1", "map") for tag in "abc"),
            Element("used", "M2", "tweet-2", "map"),
            *(Element("wasGeneratedBy", f"{tag}:1 of M2", "M2", "map") for tag in "bc"),
            Element("used", "R1", "a:1 of M1", "reduce"),
            *(Element("used", "R2", f"b:1 of M{n}", "reduce") for n in (1, 2)),
            *(Element("used", "R3", f"c:1 of M{n}", "reduce") for n in (1, 2)),
            Element("wasGeneratedBy", "a:1", "R1", "reduce"),
            Element("wasGeneratedBy", "b:2", "R2", "reduce"),
            Element("wasGeneratedBy", "c:2", "R3", "reduce"),
        ]
        reduced = contract(block(told))
        check(block(told), reduced)
        expected = {
            ("a:1", "tweet-1"),
            *((o, f"tweet-{n}") for o in ("b:2", "c:2") for n in (1, 2)),
        }
        assert pairs(reduced.hot) == {
            (vertex_id(("entity", effect)), vertex_id(("entity", cause)))
            for effect, cause in expected
        }
        assert set(reduced.hot.functions.tolist()) == {0b11}
        assert reduced.hot.derived.all()
        assert sorted(reduced.hot.names.to_pylist()) == ["a:1", "b:2", "c:2", "tweet-1", "tweet-2"]

    def test_a_kept_entity_stays_and_hands_on(self) -> None:
        told = [
            Element("wasDerivedFrom", "sum-1", "in-1", output=True),
            Element("wasDerivedFrom", "sum-2", "sum-1", output=True),
            Element("wasDerivedFrom", "sum-2", "in-2", output=True),
        ]
        reduced = contract(block(told))
        assert len(reduced.hot) == 3
        assert len(reduced.residue) == 0

    def test_what_joins_many_to_many_stays(self) -> None:
        many = [(10 + 2 * n, 2, 0, 0) for n in range(100)]
        many += [(2, 1000 + 2 * n, 0, 0) for n in range(100)]
        many += [(3000, 4, 0, 0), (4, 3002, 0, 0)]
        reduced = contract(numbered(many))
        assert check(numbered(many), reduced) == {4}

    def test_nothing(self) -> None:
        reduced = contract(Block.empty())
        assert (len(reduced.hot), len(reduced.residue)) == (0, 0)


class TestCycles:
    @settings(max_examples=amount(200, 2000), deadline=None)
    @given(numbered_edges)
    def test_members_are_those_that_reach_themselves(
        self, edges: list[tuple[int, int, int, int]]
    ) -> None:
        given = numbered(edges)
        found = np.flatnonzero(on_cycles(given.source, given.destination, 15))
        assert set(found.tolist()) == cyclic(given)


class TestDepth:
    def test_deep_chains_are_quick(self) -> None:
        """20,000 vertices one below the other, told from both ends and in no order."""
        length = 20_000
        order = np.random.default_rng(1).permutation(length)
        for places in (np.arange(length), np.arange(length)[::-1], order):
            given = numbered([(2 * p, 2 * p + 2, 1, p) for p in places.tolist()])
            start = time.perf_counter()
            reduced = contract(given)
            assert time.perf_counter() - start < 1
            assert pairs(reduced.hot) == {(0, 2 * length)}
            assert reduced.hot.time.tolist() == [length - 1]

    def test_a_deep_cycle_stays(self) -> None:
        length = 20_000
        given = numbered([(2 * p, 2 * ((p + 1) % length), 1, p) for p in range(length)])
        reduced = contract(given)
        assert len(reduced.hot) == length

    def test_deep_and_wide(self) -> None:
        """Layers of three, each vertex from all of the layer before: no vertex has one edge."""
        layers = 2_000
        edges = [
            (2 * (3 * n + a), 2 * (3 * n + 3 + b), 1 << a, n)
            for n in range(layers)
            for a in range(3)
            for b in range(3)
        ]
        start = time.perf_counter()
        reduced = contract(numbered(edges))
        assert time.perf_counter() - start < 2
        assert len(reduced.hot) == 9
        assert set(reduced.hot.functions.tolist()) == {7}
