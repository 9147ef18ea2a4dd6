"""Results a page at a time: every one once, in either order, whatever comes meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater import store as stores
from headwater.errors import PredicateError, UnknownName
from headwater.query import Store
from headwater.store import EmbeddedWriter
from tests.live.made import Made, fill
from tests.store.small import at, batch, flow, stopped


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Made]]:
    path = tmp_path_factory.mktemp("pages")
    with EmbeddedWriter.open(path) as writer:
        made = fill(writer, seed=11, batches=25)
        with stores.open(path) as store:
            yield store, made


def walked(store: Store, limit: int, **more: Any) -> list[int]:
    """All pages, one after the other."""
    found: list[int] = []
    after = None
    while True:
        rows, after = store.results_page("stopped", limit=limit, after=after, **more)
        assert rows.num_rows <= limit
        found += rows["result_id"].to_pylist()
        if after is None:
            return found
        assert rows.num_rows == limit, "only the last page has fewer"


def ordered(made: Made, newest: bool = True) -> list[int]:
    return sorted(made.results, key=lambda one: (made.results[one][0], one), reverse=newest)


@given(limit=st.integers(1, 60), newest=st.booleans())
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_pages_together_are_all_results(
    filled: tuple[Store, Made], limit: int, newest: bool
) -> None:
    store, made = filled
    assert walked(store, limit, newest=newest) == ordered(made, newest)


@given(limit=st.integers(1, 9), first=st.integers(0, 25), last=st.integers(0, 25))
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_pages_of_a_selection(
    filled: tuple[Store, Made], limit: int, first: int, last: int
) -> None:
    store, made = filled
    found = walked(store, limit, where="n >= 2", since=at(first), until=at(last))
    wanted = [
        one
        for one in ordered(made)
        if first <= made.results[one][0] < last and len(made.results[one][1]) >= 2
    ]
    assert found == wanted


def test_a_page_has_the_columns_of_results(filled: tuple[Store, Made]) -> None:
    store, _ = filled
    rows, _ = store.results_page("stopped", limit=2)
    assert rows.schema.equals(store.results("stopped").schema)
    everything, end = store.results_page("stopped", limit=10_000)
    assert end is None
    key = [("result_id", "ascending")]
    assert everything.sort_by(key) == store.results("stopped").sort_by(key)


def test_what_comes_meanwhile(tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow())
        for number in range(4):
            rows = [(number * 10 + place, number, "a", 1, [1]) for place in range(3)]
            writer.commit(batch(number, stopped(*rows)))
        with stores.open(tmp_path) as store:
            newest, place = store.results_page("stopped", limit=4)
            oldest, other = store.results_page("stopped", limit=4, newest=False)
            writer.commit(batch(4, stopped((-5, 4, "a", 1, [1]), (99, 4, "a", 1, [1]))))
            assert newest["result_id"].to_pylist() == [32, 31, 30, 22]
            rest, end = store.results_page("stopped", limit=100, after=place)
            assert rest["result_id"].to_pylist() == [21, 20, 12, 11, 10, 2, 1, 0]
            assert end is None
            assert oldest["result_id"].to_pylist() == [0, 1, 2, 10]
            rest, end = store.results_page("stopped", limit=100, newest=False, after=other)
            assert rest["result_id"].to_pylist() == [11, 12, 20, 21, 22, 30, 31, 32, -5, 99]
            first, _ = store.results_page("stopped", limit=3)
            assert first["result_id"].to_pylist() == [99, -5, 32]


def test_wrong_questions(filled: tuple[Store, Made]) -> None:
    store, _ = filled
    with pytest.raises(UnknownName):
        store.results_page("none")
    for where in ("nothing = 1", "n >", "true) or (true", "1; select 2"):
        with pytest.raises(PredicateError):
            store.results_page("stopped", where=where)
    empty, end = store.results_page("stopped", where="false")
    assert (empty.num_rows, end) == (0, None)


def test_a_condition_can_t_undo_what_stands_beside_it(filled: tuple[Store, Made]) -> None:
    """Put between parentheses it would read as two, the second of which holds for all."""
    store, _ = filled
    for where in ("false) or (true", "false) or true or (false", "n > 1)--\n or (true"):
        with pytest.raises(PredicateError, match="where="):
            store.results("stopped", where=where, until=at(0))
    rows = store.results("stopped", where="n > 1 -- ) or (true", until=at(0))
    assert rows.num_rows == 0
