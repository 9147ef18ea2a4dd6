"""Windows: who is in, and when that changes."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import FlowError
from headwater.mapreduce.windows import (
    Change,
    Length,
    Member,
    Time,
    arrival,
    changes,
    length,
    next_expiry,
    time,
    window_of,
)


def told(found: list[Change]) -> list[tuple[int, list[int]]]:
    return [(change.at, [member.file for member in change.members]) for change in found]


def test_a_length_window_is_that_of_figure_74() -> None:
    files = [Member(n, n) for n in range(5)]
    found = [files for _, files in told(list(changes(length(3), (), files)))]
    assert found == [[0], [0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4]]


def test_a_time_window_changes_by_files_and_by_time_alone() -> None:
    files = [Member(0, 0), Member(1, 4), Member(2, 10), Member(3, 30)]
    window = Time(10)
    assert told(list(changes(window, (), files, now=39))) == [
        (0, [0]),
        (4, [0, 1]),
        (10, [1, 2]),  # 0 leaves as 2 comes: one change
        (14, [2]),
        (20, []),
        (30, [3]),
    ]
    assert told(list(changes(window, (files[3],), (), now=40))) == [(40, [])]
    assert next_expiry(window, (files[3],)) == 40
    assert next_expiry(length(1), (files[3],)) is None


@given(
    st.lists(st.integers(0, 60), max_size=12).map(sorted),
    st.integers(1, 20),
    st.integers(0, 90),
    st.data(),
)
def test_a_time_window_has_at_each_moment_the_files_of_its_length(
    times: list[int], size: int, late: int, data: st.DataObject
) -> None:
    members = [Member(n, t) for n, t in enumerate(times)]
    now = (times[-1] if times else 0) + late
    # However the files come in steps, it is one and the same sequence of windows.
    cut = data.draw(st.integers(0, len(members)))
    first = list(changes(Time(size), (), members[:cut]))
    middle = first[-1].members if first else ()
    found = [*first, *changes(Time(size), middle, members[cut:], now)]
    assert told(found) == told(list(changes(Time(size), (), members, now)))
    last = {change.at: change.members for change in found}
    ats = [change.at for change in found]
    assert ats == sorted(ats)
    for moment in range(now + 1):
        before = [at for at in last if at <= moment]
        inside = last[max(before)] if before else ()
        expected = [m for m in members if m.time <= moment < m.time + size]
        assert list(inside) == expected, moment
    assert all(a.members != b.members for a, b in itertools.pairwise(found)), "a change is one"
    assert sum(change.added is not None for change in found) == len(members)


def test_files_are_timed_in_the_order_of_what_happened() -> None:
    assert arrival(5, None, 9) == 5
    assert arrival(5, 7, 9) == 7, "it comes late: at the last change"
    assert arrival(50, 7, 9) == 9, "from the future: now"
    assert arrival(50, 12, 9) == 12, "the machine's clock went back"


def test_windows_are_read_from_texts() -> None:
    assert window_of("3") == window_of(3) == Length(3)
    assert window_of("1 hour 30 min") == Time(5_400_000_000, "1 hour 30 min")
    assert window_of("500ms").length == 500_000  # type: ignore[union-attr]
    assert (str(time("10 min")), str(length(1))) == ("10 min", "1 file")


@pytest.mark.parametrize("wrong", ["", "0", "ten minutes", "10 parsecs", 0, -1, True, 1.5, None])
def test_what_is_no_window_is_refused(wrong: object) -> None:
    with pytest.raises(FlowError):
        window_of(wrong)  # type: ignore[arg-type]
