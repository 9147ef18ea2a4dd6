"""The bounded-pass sort: what leaves the buffer, and when."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.ordered.sorting import BoundedSort
from tests.ordered.rows import PLACE, arrivals, through


def run(slack: int, *batches: list[int | None]) -> list[list[tuple[int | None, int]]]:
    tables, first = [], 0
    for values in batches:
        tables.append(arrivals(values, pa.int64(), first=first))
        first += len(values)
    made = through(BoundedSort(slack, ("v",), (PLACE,)), tables)
    return [[(row["v"], row[PLACE]) for row in batch] for batch in made]


def test_the_least_goes_on_once_the_buffer_is_full() -> None:
    assert run(2, [3, 1, 2], [0, 9, 8]) == [[(1, 2)], [(0, 3), (2, 4), (3, 5)]]


def test_without_slack_rows_pass_as_they_come() -> None:
    assert run(0, [3, 1], [2]) == [[(3, 0), (1, 1)], [(2, 2)]]


def test_nulls_come_first_and_equals_in_order_of_arrival() -> None:
    made = through(BoundedSort(2, ("v",), (PLACE,)), [arrivals([5, None, 5, 5, 7], pa.int64())])
    assert [row["id"] for row in made[0]] == [1, 0, 2]


@given(st.lists(st.integers(0, 30), max_size=30), st.integers(0, 6))
def test_what_comes_no_later_than_the_slack_is_sorted(values: list[int], slack: int) -> None:
    late = sorted(values)
    for at in range(0, len(late) - slack, slack + 1):
        late[at], late[at + slack] = late[at + slack], late[at]
    out = [v for batch in run(slack, late, [99] * slack) for v, _ in batch]
    assert out == sorted(values)
