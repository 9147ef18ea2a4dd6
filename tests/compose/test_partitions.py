"""Labels and partitions against what they mean, on random graphs; and in linear time."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.compose import Composition
from headwater.compose.curve import SHAPES, curve
from headwater.compose.partitions import partition
from tests.compose.figures import service


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]], list[int]]:
    """A number of nodes in order, edges forward, a colour for each node."""
    size = draw(st.integers(1, 9))
    pairs = [(a, b) for b in range(size) for a in range(b)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return size, edges, draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))


def components(nodes: list[int], edges: list[tuple[int, int]]) -> set[frozenset[int]]:
    """Connected sets, by repeated looking."""
    sets = {node: {node} for node in nodes}
    for _ in nodes:
        for a, b in edges:
            both = sets[a] | sets[b]
            for node in both:
                sets[node] = both
    return {frozenset(each) for each in sets.values()}


def acyclic(sets: set[frozenset[int]], edges: list[tuple[int, int]]) -> bool:
    """Whether the sets can be put in order, by taking away those that wait for none."""
    left = set(sets)
    while left:
        free = {
            each
            for each in left
            if not any(b in each and a not in each for a, b in edges if any(a in x for x in left))
        }
        if not free:
            return False
        left -= free
    return True


@settings(max_examples=250, deadline=None)
@given(graphs())
def test_partitions_are_connected_alike_without_cycles_and_as_large_as_can_be(
    graph: tuple[int, list[tuple[int, int]], list[int]],
) -> None:
    size, edges, colour = graph
    nodes = list(range(size))
    alike = [(a, b) for a, b in edges if colour[a] == colour[b]]
    made = partition(nodes, edges, lambda a, b: colour[a] == colour[b])
    found = {frozenset(each) for each in made}
    assert sorted(node for each in made for node in each) == nodes
    for each in found:
        assert len({colour[node] for node in each}) == 1
        inside = [(a, b) for a, b in alike if a in each and b in each]
        assert components(sorted(each), inside) == {each}
    assert acyclic(found, edges)
    largest = components(nodes, alike)
    if acyclic(largest, edges):
        assert found == largest
    else:
        assert all(any(each <= whole for whole in largest) for each in found)


def test_what_would_wait_for_itself_is_cut() -> None:
    """A job between two functions that are connected directly as well."""
    flow = Composition("x").source("s", stream="s")
    flow = service(flow, "a", "s").job("j", "a", call="m:f", schema="y int")
    flow = service(flow, "b", ["a", "j"])
    plan = flow.plan()
    assert [set(each.nodes) for each in plan.subflows] == [{"s"}, {"a"}, {"j"}, {"b"}]
    assert plan.deployable  # one event each: the same label everywhere


# --- labels, by running the flow on numbered events --------------------------------------------

STEPS = ("function", "filter", "merge", "aggregate", "source", "static")


def random_flow(choose: random.Random) -> Composition:
    flow = Composition("random").source("n0", stream="n0").static("n1", value=1)
    for at in range(2, choose.randint(3, 14)):
        name, kind = f"n{at}", choose.choice(STEPS)
        above = [f"n{i}" for i in choose.sample(range(at), min(at, choose.randint(1, 3)))]
        streams = [a for a in above if a in carries(flow, static=False)]
        if kind == "function":
            flow = flow.function(name, above, call="m:f", schema="x int")
        elif kind == "filter" and streams:
            flow = flow.filter(name, streams[0], where="x > 0")
        elif kind == "aggregate" and streams:
            flow = flow.aggregate(name, streams[0], window={"count": 2}, columns={"x": "sum(x)"})
        elif kind == "merge" and len(streams) > 1:
            flow = flow.merge(name, streams)
        elif kind == "source":
            flow = flow.source(name, stream=name)
        else:
            flow = flow.static(name, value=at)
    return flow


def carries(flow: Composition, *, static: bool) -> set[str]:
    from headwater.compose.graph import Graph
    from headwater.compose.labels import label

    return {name for name, x in label(Graph(flow)).of.items() if x.is_static == static}


def run(flow: Composition, choose: random.Random) -> dict[str, list[object] | None]:
    """The events of each node, by what they came from; None is a static value.

    A function of two streams pairs what comes first with what comes first, as long as both last.
    """
    made: dict[str, list[object] | None] = {}
    for name, node in flow.nodes.items():
        inputs = [made[port.node] for port in node.inputs]
        streams = [each for each in inputs if each is not None]
        match node.kind:
            case "source":
                made[name] = [(name, at) for at in range(choose.randint(5, 40))]
            case "filter":
                made[name] = [event for event in streams[0] if choose.random() < 0.5]
            case "merge":
                made[name] = [event for each in streams for event in each]
            case "aggregate":
                made[name] = list(zip(streams[0][::2], streams[0][1::2], strict=False))
            case _:
                made[name] = streams[0][: min(map(len, streams))] if streams else None
    return made


@pytest.mark.parametrize("seed", range(150))
def test_outputs_of_one_label_carry_the_same_events(seed: int) -> None:
    choose = random.Random(seed)
    flow = random_flow(choose)
    from headwater.compose.graph import Graph
    from headwater.compose.labels import label

    labels = label(Graph(flow))
    made = run(flow, choose)
    by_label: dict[object, list[str]] = {}
    for name, given_label in labels.of.items():
        assert given_label.is_static == (made[name] is None)
        by_label.setdefault(given_label, []).append(name)
    for given_label, names in by_label.items():
        if not given_label.is_static:  # type: ignore[attr-defined]
            assert len({str(made[name]) for name in names}) == 1
    # No more labels than needed: only what can change the events invents one.
    for name, node in flow.nodes.items():
        if node.kind == "function" and name not in labels.mixed:
            origins = {labels.of[p.node] for p in node.inputs} - {labels.of["n1"]}
            assert not origins or labels.of[name] in origins


# --- time --------------------------------------------------------------------------------------


def test_time_for_each_node_does_not_grow() -> None:
    points = {(p.shape, p.nodes > 5_000): p for p in curve([1_000, 10_000], repetitions=3)}
    assert Counter(shape for shape, _ in points) == {"sequential": 2, "in-tree": 2}
    for shape in SHAPES:
        small, large = points[shape, False], points[shape, True]
        assert large.nodes > 9.9 * small.nodes
        # A quadratic step would make this 10; caches and allocation account for less than 2.5.
        assert large.each < 2.5 * small.each, shape


def test_a_whole_file_of_many_nodes_is_read_checked_and_planned() -> None:
    flow = Composition.parse(SHAPES["in-tree"](2_000).to_json())
    assert len(flow.plan().subflows) == 2
    assert flow.check() == ()
