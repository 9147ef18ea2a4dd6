"""Each ancestor function of Table II by itself, on small tables."""

from __future__ import annotations

import pytest

import headwater.saf as saf
from headwater.errors import FlowError
from tests.saf.tables import keys, rows

STREAM_1 = """
100  1  1  0
110  2  1  0
125  3  1  0
130  4  1  0
"""

STREAM_2 = """
105  1  2  0
110  2  2  0
128  3  2  0
"""


def found(
    operation: saf.Operation, assertions: str, *asked: saf.Key
) -> list[list[tuple[int, int]]]:
    """By asked key, the (stream, sequence number) of its inputs, in the order of the answer."""
    provenance = saf.Provenance(saf.Flow([operation]), keys(assertions))
    answer: list[list[tuple[int, int]]] = [[] for _ in asked]
    for of, _, _, seqno, stream, _ in rows(provenance.ancestors(list(asked))):
        answer[of - 1].append((stream, seqno))
    return answer


@pytest.mark.parametrize("kind", [saf.Map, saf.Filter])
def test_map_and_filter_find_the_event_of_the_time_before_the_delay(
    kind: type[saf.Map | saf.Filter],
) -> None:
    operation = kind(id=1, input=1, output=9)
    assert found(
        operation,
        STREAM_1 + STREAM_2,  # stream 2 also has an event at 110
        saf.Key(112, 1, 9, 2),
        saf.Key(125, 2, 9, 0),
        saf.Key(127, 3, 9, 1),
    ) == [[(1, 2)], [(1, 3)], []]


def test_a_time_window_has_both_its_ends() -> None:
    operation = saf.TimeWindow(id=1, input=1, output=9, time=15)
    assert found(
        operation,
        STREAM_1,
        saf.Key(101, 1, 9, 1),  # 85 to 100
        saf.Key(126, 3, 9, 1),  # 110 to 125
        saf.Key(133, 4, 9, 3),  # 115 to 130
    ) == [[(1, 1)], [(1, 3), (1, 2)], [(1, 4), (1, 3)]]


def test_a_time_window_of_no_time_has_one_instant() -> None:
    operation = saf.TimeWindow(id=1, input=1, output=9, time=0)
    assert found(operation, STREAM_1, saf.Key(133, 4, 9, 3)) == [[(1, 4)]]


def test_a_length_window_counts_by_sequence_number() -> None:
    """The printed lower bound, n - 1 + 1, would find only the last event."""
    operation = saf.LengthWindow(id=1, input=1, output=9, length=3)
    assert found(
        operation,
        STREAM_1,
        saf.Key(140, 4, 9, 10),
        saf.Key(112, 2, 9, 2),
    ) == [[(1, 4), (1, 3), (1, 2)], [(1, 2), (1, 1)]]


def test_a_time_window_join_has_a_window_on_each_side() -> None:
    operation = saf.TimeWindowJoin(id=1, left=1, right=2, output=9, left_time=5, right_time=20)
    assert found(
        operation,
        STREAM_1 + STREAM_2,
        saf.Key(133, 1, 9, 3),  # 125 to 130, and 110 to 130
        saf.Key(111, 2, 9, 1),  # 105 to 110, and 90 to 110
    ) == [[(1, 4), (1, 3), (2, 3), (2, 2)], [(1, 2), (2, 2), (2, 1)]]


def test_a_length_window_join_has_the_latest_events_of_each_side() -> None:
    operation = saf.LengthWindowJoin(id=1, left=1, right=2, output=9, left_length=2, right_length=1)
    assert found(
        operation,
        STREAM_1 + STREAM_2,
        saf.Key(129, 1, 9, 0),  # up to 129
        saf.Key(113, 2, 9, 3),  # up to 110
        saf.Key(104, 3, 9, 0),  # before stream 2 began
        saf.Key(99, 4, 9, 0),
    ) == [[(1, 3), (1, 2), (2, 3)], [(1, 2), (1, 1), (2, 2)], [(1, 1)], []]


@pytest.mark.parametrize(
    "operation",
    [
        saf.TimeWindowJoin(id=1, left=1, right=1, output=9, left_time=5, right_time=20),
        saf.LengthWindowJoin(id=1, left=1, right=1, output=9, left_length=2, right_length=3),
    ],
)
def test_an_event_on_both_sides_of_a_join_is_one_ancestor(operation: saf.Operation) -> None:
    """Table II unites the sides as sets."""
    ((*inputs,),) = found(operation, STREAM_1, saf.Key(131, 1, 9, 1))
    assert sorted(inputs) == [(1, 2), (1, 3), (1, 4)]


def test_events_of_one_instant_are_told_apart_by_number_only() -> None:
    """Two events of one stream at one time: a map's key can't say which, a length window's can."""
    twins = """
    100  1  1  0
    100  2  1  0
    """
    key = saf.Key(103, 2, 9, 3)
    assert found(saf.Map(id=1, input=1, output=9), twins, key) == [[(1, 2), (1, 1)]]
    assert found(saf.LengthWindow(id=1, input=1, output=9, length=1), twins, key) == [[(1, 2)]]


def test_an_assertion_that_was_recorded_twice_counts_once() -> None:
    operation = saf.Map(id=1, input=1, output=9)
    assert found(operation, STREAM_1 + STREAM_1, saf.Key(112, 2, 9, 2)) == [[(1, 2)]]


def test_keys_of_several_streams_are_asked_for_together() -> None:
    flow = saf.Flow([saf.Map(id=1, input=1, output=8), saf.Map(id=2, input=2, output=9)])
    provenance = saf.Provenance(flow, keys(STREAM_1 + STREAM_2))
    asked = keys("""
    107  1  9  2
    102  1  8  2
    """)
    assert rows(provenance.ancestors(asked)) == [(1, None, 105, 1, 2, 0), (2, None, 100, 1, 1, 0)]


def test_no_keys_have_no_ancestors() -> None:
    provenance = saf.Provenance(saf.Flow([saf.Map(id=1, input=1, output=9)]), keys(STREAM_1))
    assert provenance.ancestors([]).num_rows == 0
    assert provenance.retrieve_ancestors([]).trace.num_rows == 0


def test_a_source_event_has_no_ancestors_to_ask_for() -> None:
    provenance = saf.Provenance(saf.Flow([saf.Map(id=1, input=1, output=9)]), keys(STREAM_1))
    with pytest.raises(FlowError, match="no operation makes stream 1"):
        provenance.ancestors(saf.Key(100, 1, 1))
