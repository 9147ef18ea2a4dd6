"""Ancestor functions composed: traces, graphs and replays of small flows."""

from __future__ import annotations

import pytest

import headwater.saf as saf
from tests.saf.tables import events, keys, rows

WINDOWS = saf.Flow(
    [
        saf.LengthWindow(id=1, input=1, output=2, length=2),
        saf.Map(id=2, input=2, output=3, function=sum),
        saf.LengthWindow(id=3, input=3, output=4, length=2),
    ]
)
EVENTS = """
100  1  1  0
110  2  1  0
120  3  1  0
101  1  2  1
111  2  2  1
121  3  2  1
101  1  3  0
111  2  3  0
121  3  3  0
"""
"""Streams 1, 2 and 3; stream 4 is not recorded."""


def test_a_key_reached_twice_through_one_operation_is_one_row() -> None:
    """Event 2 is in both windows of stream 2 that lead to the result."""
    answer = saf.Provenance(WINDOWS, keys(EVENTS)).retrieve_ancestors(saf.Key(123, 3, 4, 2))
    assert [row[3:5] for row in rows(answer.trace)] == [
        *((3, 4),),
        *((3, 3), (2, 3)),
        *((3, 2), (2, 2)),
        *((3, 1), (2, 1), (1, 1)),
    ]
    assert rows(answer.edges)[-4:] == [(4, 6), (4, 7), (5, 7), (5, 8)]
    assert answer.sources["seqno"].to_pylist() == [1, 2, 3]


def test_a_key_reached_by_two_ways_is_two_rows() -> None:
    """As with rows 9 and 10 of Figure 8, here on one level."""
    flow = saf.Flow(
        [
            saf.Map(id=1, input=1, output=2),
            saf.Map(id=2, input=1, output=3),
            saf.TimeWindowJoin(id=3, left=2, right=3, output=4, left_time=5, right_time=5),
        ]
    )
    text = """
    100  1  1  0
    102  1  2  2
    103  1  3  3
    """
    answer = saf.Provenance(flow, keys(text)).retrieve_ancestors(saf.Key(104, 1, 4, 1))
    assert answer.trace["stream_id"].to_pylist() == [4, 2, 3, 1, 1]
    assert rows(answer.edges) == [(1, 2), (1, 3), (3, 4), (2, 5)]
    assert answer.sources.num_rows == 1


def test_each_of_several_keys_has_its_own_sources() -> None:
    asked = [saf.Key(123, 3, 4, 2), saf.Key(112, 2, 4, 1), saf.Key(123, 3, 4, 2)]
    answer = saf.Provenance(WINDOWS, keys(EVENTS)).retrieve_ancestors(asked)
    assert answer.asked["seqno"].to_pylist() == [3, 2]
    assert [(of, seqno) for of, _, seqno, _, _ in rows(answer.pairs())] == [
        *((1, 1), (1, 2), (1, 3)),
        *((2, 1), (2, 2)),
    ]


def test_a_key_of_a_stream_to_stop_at_is_its_own_result() -> None:
    answer = saf.Provenance(WINDOWS, keys(EVENTS)).retrieve_ancestors(saf.Key(110, 2, 1))
    assert [row[-1] for row in rows(answer.trace)] == [2]
    assert answer.edges.num_rows == 0
    assert rows(answer.pairs()) == [(1, 110, 2, 1, 0)]


def test_what_was_not_recorded_ends_a_branch() -> None:
    partial = keys(EVENTS).slice(0, 3)
    answer = saf.Provenance(WINDOWS, partial).retrieve_ancestors(saf.Key(123, 3, 4, 2))
    assert answer.trace["trace_status"].to_pylist() == [0]
    assert answer.sources.num_rows == 0


def test_a_result_that_nothing_recorded_has_no_key() -> None:
    provenance = saf.Provenance(WINDOWS, events(EVENTS, 1, 10, 100))
    replay = provenance.replay(provenance.retrieve_ancestors(saf.Key(123, 3, 4, 2)).sources)
    assert replay.results == {4: [[1], [1, 11], [11, 110]]}
    assert [row[2:7] for row in rows(replay.table)][-1] == (None, 3, 4, None, "[11, 110]")


def test_given_keys_choose_among_the_results() -> None:
    provenance = saf.Provenance(WINDOWS, events(EVENTS, 1, 10, 100))
    answer = provenance.retrieve_ancestors(saf.Key(123, 3, 4, 2))
    replay = provenance.replay(answer.sources, until=[4], keys=answer.asked)
    assert replay.results == {4: [[11, 110]]}
    assert [row[2:7] for row in rows(replay.table)][-1] == (123, 3, 4, 2, "[11, 110]")


def test_a_replay_may_start_in_the_middle() -> None:
    provenance = saf.Provenance(WINDOWS, keys(EVENTS))
    start = events(
        """
        111  2  3  0
        121  3  3  0
        """,
        5,
        6,
    )
    assert provenance.replay(start).results == {4: [[5], [5, 6]]}


def test_events_that_are_missing_leave_gaps_in_length_windows() -> None:
    provenance = saf.Provenance(WINDOWS, events(EVENTS, 1, 10, 100))
    ends = [saf.Key(100, 1, 1), saf.Key(120, 3, 1)]
    assert provenance.replay(ends, until=[2]).results == {2: [[1], [100]]}


def test_a_filter_numbers_anew_and_a_replay_finds_its_keys_by_time() -> None:
    flow = saf.Flow([saf.Filter(id=1, input=1, output=2, predicate=lambda v: v > 5)])
    text = """
    100  1  1  0
    110  2  1  0
    113  1  2  3
    """
    provenance = saf.Provenance(flow, events(text, 1, 10))
    replay = provenance.replay([saf.Key(100, 1, 1), saf.Key(110, 2, 1)])
    assert rows(replay.table)[-1] == (3, None, 113, 1, 2, 3, "10", 2)


def test_what_the_run_did_not_make_is_left_out() -> None:
    """The predicate lets an event pass that the recorded run had held back."""
    flow = saf.Flow([saf.Filter(id=1, input=1, output=2)])
    text = """
    100  1  1  0
    110  2  1  0
    113  1  2  3
    """
    provenance = saf.Provenance(flow, events(text, 1, 10))
    replay = provenance.replay([saf.Key(100, 1, 1), saf.Key(110, 2, 1)])
    assert replay.results == {2: [10]}


JOIN = saf.LengthWindowJoin(
    id=1,
    left=1,
    right=2,
    output=3,
    left_length=2,
    right_length=2,
    condition=lambda left, right: left != right,
)


@pytest.mark.parametrize(
    ("recorded", "numbers"),
    [
        # Both pairs of the last event are recorded, in the order in which they were made.
        ("\n121 1 3 1\n122 2 3 2", [1, 2]),
        # Only one: then nothing says which of the two it was.
        ("", [None, None]),
    ],
)
def test_the_pairs_of_one_event_have_their_keys_in_order(
    recorded: str, numbers: list[int | None]
) -> None:
    text = """
    100  1  1  0
    110  2  1  0
    120  1  2  0
    """
    start = events(text, "a", "b", "c")
    provenance = saf.Provenance(saf.Flow([JOIN]), keys(text + recorded))
    replay = provenance.replay(start, keys=saf.Key(122, 2, 3, 2))
    assert replay.results == {3: [("a", "c"), ("b", "c")]}
    assert replay.table["seqno"].to_pylist()[-2:] == numbers


def test_the_condition_of_a_join_holds() -> None:
    text = """
    100  1  1  0
    110  1  2  0
    """
    provenance = saf.Provenance(saf.Flow([JOIN]), keys(text))
    assert provenance.replay(events(text, "a", "a")).results == {3: []}
