"""Local reducers without Spark: what each strategy makes of a bucket, batch after batch."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.reduce.blocks import NO_TIME, Block, Residue, is_activity
from headwater.reduce.contraction import Reduced
from headwater.reduce.facts import EDGES_ROW, END, FACTS, HELD, HOT, RESIDUE, TICK, Facts, letters
from headwater.reduce.hosting import in_order, number, reduced
from headwater.reduce.intake import UNORDERED
from headwater.reduce.local import Grouping, Watermark, Window, chunks
from headwater.reduce.windowing import SlidingWindow
from headwater.testing.prov_graphs import (
    Element,
    block,
    closure,
    completed,
    dependencies,
    disordered,
    duplicated,
)
from headwater.testing.prov_strategies import jobs
from tests.reduce.streams import longest_gap

FEW = settings(max_examples=80, deadline=None)


def at(seconds: float) -> int:
    """A time of elements', in µs."""
    return Element("used", "a", "b", seconds=0).micros + round(seconds * 1e6)


def blocks_of(told: list[Element], random: Random) -> list[Block]:
    """The elements in blocks of random sizes."""
    blocks, start = [], 0
    while start < len(told):
        size = random.choice([1, 3, 10, 40])
        blocks.append(block(told[start : start + size]))
        start += size
    return blocks


def pairs(told: Block) -> list[tuple[int, int]]:
    return list(zip(told.source.tolist(), told.destination.tolist(), strict=True))


@FEW
@given(jobs(), st.integers(1, 20), st.randoms(use_true_random=False))
def test_chunks_have_so_many_elements_in_order(
    told: list[Element], size: int, random: Random
) -> None:
    found = list(chunks(blocks_of(told, random), size))
    assert [len(chunk) for chunk in found[:-1]] == [size] * (len(found) - 1)
    assert [edge for chunk in found for edge in pairs(chunk)] == pairs(block(told))
    for chunk in found:
        assert set(chunk.ids.tolist()) >= {*chunk.source.tolist(), *chunk.destination.tolist()}
    assert sum(chunk.elements for chunk in found) == len(told)


@FEW
@given(jobs(), st.integers(1, 20), st.randoms(use_true_random=False))
def test_grouping_loses_nothing(told: list[Element], size: int, random: Random) -> None:
    order = duplicated(disordered(told, 50, random), 20, random)
    blocks = blocks_of(order, random)
    cut = random.randint(0, len(blocks))
    reducer = Grouping(size, named=True)
    steps = [reducer.apply(None, some, None, False) for some in (blocks[:cut], blocks[cut:])]
    assert all(step.state is None for step in steps)
    # Which residue belongs to which block does not matter for what they hold together.
    parts = [Reduced(hot, Residue.empty()) for step in steps for hot in step.hot]
    parts += [Reduced(Block.empty(), aside) for step in steps for aside in step.residue]
    assert completed(parts) == dependencies(told)


def test_names_of_what_is_eliminated_stay_only_on_request() -> None:
    told = block([Element("used", "a", "in"), Element("wasGeneratedBy", "out", "a")])
    [aside] = Grouping(10).apply(None, [told], None, False).residue
    assert len(aside) == 2
    assert len(aside.edges.names) == 0
    [aside] = Grouping(10, named=True).apply(None, [told], None, False).residue
    assert aside.edges.names.to_pylist() == ["a"]


@FEW
@given(jobs(), st.integers(1, 20), st.integers(0, 30))
def test_the_window_goes_on_in_the_next_batch(told: list[Element], size: int, window: int) -> None:
    reducer = Window(size, window)
    cut = len(told) // 2
    first = reducer.apply(None, [block(told[:cut])] if cut else [], None, False)
    second = reducer.apply(first.state, [block(told[cut:])], None, False)
    expected, hot = SlidingWindow.start(window), []
    for half in (told[:cut], told[cut:]):
        for start in range(0, len(half), size):
            made, expected = expected.add(block(half[start : start + size])).flush()
            hot.append(made)
    got = [*first.hot, *second.hot]
    assert [sorted(pairs(one)) for one in got] == [sorted(pairs(one)) for one in hot]
    assert len(SlidingWindow.from_bytes(second.state or b"").recent) == min(window, len(told))


# --- watermark ---


@FEW
@given(jobs(), st.integers(0, 8), st.integers(1, 3), st.randoms(use_true_random=False))
def test_by_time_activities_go_and_nothing_is_lost(
    told: list[Element], bound: int, buckets: int, random: Random
) -> None:
    order = sorted(told, key=lambda e: e.seconds + random.uniform(0, bound))
    lifetime = longest_gap(told) * 1_000_000
    reducer = Watermark(lifetime)
    states: list[bytes | None] = [None] * buckets
    held: list[int | None] = [None] * buckets
    hot: list[Block] = []
    last: dict[int, int] = {}
    latest, watermark, past, start = NO_TIME, None, NO_TIME, 0
    while start <= len(order):
        size = random.randint(1, 12)
        some, start = order[start : start + size], start + size
        ended = start > len(order)
        before = dict(last)
        for bucket in range(buckets):
            mine = [e for e in some if bucket_of(e) % buckets == bucket]
            step = reducer.apply(states[bucket], [block(mine)] if mine else [], watermark, ended)
            assert step.late is None
            states[bucket], held[bucket] = step.state, step.held
            hot += step.hot
            for one in step.hot:
                for vertex, time in zip(
                    [*one.source.tolist(), *one.destination.tolist()],
                    [*one.time.tolist()] * 2,
                    strict=True,
                ):
                    # What the store took to be past must not get another edge.
                    assert vertex not in before or before[vertex] + lifetime >= past
                    last[vertex] = max(time, last.get(vertex, time))
        past = min([watermark or NO_TIME, *(time for time in held if time is not None)])
        latest = max([latest, *(e.micros for e in some)])
        watermark = latest - bound * 1_000_000
    assert states == [None] * buckets
    assert closed(Block.joined(hot)) == dependencies(told)


def bucket_of(element: Element) -> int:
    """By activity, as the intake does it; between entities anything will do."""
    return sum(map(ord, next((name for kind, name in element.edge if kind == "activity"), "x")))


def closed(edges: Block) -> set[tuple[str, str]]:
    """The dependencies of edges, by name."""
    names = dict(zip(edges.ids.tolist(), edges.names.to_pylist(), strict=True))
    below = closure(set(pairs(edges)))
    causes, kept = set(edges.destination.tolist()), set(edges.kept.tolist())
    return {
        (names[output], names[cause])
        for output, found in below.items()
        if not output & 1 and (output not in causes or output in kept)
        for cause in found
        if not cause & 1 and cause not in below
    }


USED = Element("used", "a", "in", seconds=10)
MADE = Element("wasGeneratedBy", "out", "a", seconds=20)


def test_an_activity_waits_for_its_last_edge_and_its_lifetime() -> None:
    reducer = Watermark(5_000_000)
    step = reducer.apply(None, [block([USED])], at(0), False)
    assert (list(step.hot), step.held, step.due) == ([], at(10), at(15) + 1)
    step = reducer.apply(step.state, [block([MADE])], at(12), False)
    assert (list(step.hot), step.held, step.due) == ([], at(10), at(25) + 1)
    same = reducer.apply(step.state, [], at(25), False)
    assert (list(same.hot), same.due) == ([], at(25) + 1)
    step = reducer.apply(same.state, [], at(25) + 1, False)
    [hot] = step.hot
    assert hot.names.to_pylist() == sorted(
        ["in", "out"], key=lambda n: hot.ids[hot.names.to_pylist().index(n)]
    )
    assert (len(hot), hot.derived.tolist(), hot.time.tolist()) == (1, [True], [at(20)])
    assert (step.state, step.held, step.due) == (None, None, None)


def test_the_end_lets_all_go() -> None:
    step = Watermark(5_000_000).apply(None, [block([USED, MADE])], None, ended=True)
    assert [len(hot) for hot in step.hot] == [1]
    assert step.state is None


def test_edges_between_entities_do_not_wait() -> None:
    derived = Element("wasDerivedFrom", "out", "in", seconds=10)
    step = Watermark(5_000_000).apply(None, [block([derived, USED])], None, False)
    assert [pairs(hot) for hot in step.hot] == [pairs(block([derived]))]
    assert step.held == at(10)


def test_late_elements_become_letters() -> None:
    late = Element("wasGeneratedBy", 'a "b"', "a", seconds=9)
    step = Watermark(0).apply(None, [block([USED, late])], at(10), False)
    assert step.late is not None
    [letter] = step.late.to_pylist()
    assert letter["reason"] == "late: its time is before the watermark"
    assert letter["line"] == (
        '{"type": "wasGeneratedBy", "entity": "a \\"b\\"", "activity": "a", '
        '"time": "2026-01-01T00:00:09.000000Z"}'
    )
    assert len(Block.from_bytes(step.state or b"")) == 1


def test_an_output_of_its_own_right_is_remembered_with_its_edges() -> None:
    marked = Element("wasGeneratedBy", "out", "a", seconds=20, output=True)
    step = Watermark(5_000_000).apply(None, [block([USED, marked])], None, False)
    step = Watermark(5_000_000).apply(step.state, [], at(100), False)
    assert [hot.kept.tolist() for hot in step.hot] == [block([marked]).kept.tolist()]


# --- rows ---


def test_rows_are_taken_in_the_order_of_the_input() -> None:
    rows = [(2, FACTS, b"c"), (0, FACTS, b"a"), (1, FACTS, b"b")]
    assert in_order(rows) == ([(0, FACTS, b"a"), (1, FACTS, b"b"), (2, FACTS, b"c")], None)


def test_what_comes_after_the_end_is_left_out() -> None:
    rows = [(2, FACTS, b"c"), (0, FACTS, b"a"), (1, END, b""), (1, FACTS, b"b"), (3, END, b"")]
    assert in_order(rows) == ([(0, FACTS, b"a"), (1, FACTS, b"b")], 1)
    unordered = [(UNORDERED, FACTS, b"a"), (UNORDERED, END, b"")]
    assert in_order(unordered) == ([(UNORDERED, FACTS, b"a")], UNORDERED)


def test_a_bucket_hands_on_blocks_facts_and_what_it_holds() -> None:
    facts = Facts(3, 100, {"entity": 2}, letters("why", "here", ["x"])).to_bytes()
    arrived = [(0, EDGES_ROW, block([USED, MADE]).to_bytes()), (0, FACTS, facts), (0, TICK, b"")]
    made, step = reduced(Grouping(10), None, arrived, None, last=False)
    assert [kind for kind, _ in made] == [FACTS, HOT, RESIDUE, HELD]
    assert dict(made)[FACTS] == facts
    assert number(dict(made)[HELD]) is None
    made, step = reduced(Watermark(1), None, arrived, None, last=False)
    assert number(dict(made)[HELD]) == at(10)
    made, step = reduced(Watermark(1), step.state, [(4, END, b"")], None, last=False)
    assert [kind for kind, _ in made] == [HOT, HELD, END]
    assert number(dict(made)[END]) == 4
    assert not is_activity(np.array(pairs(Block.from_bytes(dict(made)[HOT])))).any()


def test_late_elements_are_no_longer_counted() -> None:
    arrived = [(0, EDGES_ROW, block([USED, MADE]).to_bytes())]
    made, _ = reduced(Watermark(1), None, arrived, at(15), last=False)
    [late] = [Facts.from_bytes(payload) for kind, payload in made if kind == FACTS]
    assert (late.elements, late.letters.num_rows) == (-1, 1)


def test_facts_add_up_and_survive_the_way() -> None:
    one = Facts(3, 100, {"entity": 2}, letters("why", "here", ["x"]))
    both = Facts.sum([one, Facts(1, 5, {"entity": 1, "agent": 1})])
    found = Facts.from_bytes(both.to_bytes())
    assert (found.elements, found.size, found.filtered) == (4, 105, {"entity": 3, "agent": 1})
    assert found.letters.to_pylist() == [{"reason": "why", "where": "here", "line": "x"}]
    assert found.spans.num_rows == 0
