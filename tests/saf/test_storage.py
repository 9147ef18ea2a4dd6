"""The storage formulas, on numbers worked by hand."""

from __future__ import annotations

import pytest

from headwater.saf import storage

SMALL = {"key": 50, "content": 100, "messages": 100_000, "components": 10}
LARGE = {"key": 50, "content": 1_000, "messages": 100_000, "components": 10}


def test_unoptimized() -> None:
    assert storage.unoptimized_cost(**SMALL) == 150_000_000  # 150 × 100,000 × 10
    assert storage.unoptimized_cost(**LARGE) == 1_050_000_000


def test_optimized() -> None:
    assert storage.optimized_cost(**SMALL) == 60_000_000  # 15,000,000 + 5,000,000 × 9
    assert storage.optimized_cost(**LARGE) == 150_000_000  # 105,000,000 + 5,000,000 × 9


def test_saved() -> None:
    """With keys of 50 bytes, about what the paper measured: 60 and 85 percent."""
    assert storage.saved_percent(**SMALL) == pytest.approx(60.0)
    assert storage.saved_percent(**LARGE) == pytest.approx(85.714, abs=0.001)


def test_marginal() -> None:
    assert storage.unoptimized_marginal_cost(key=50, content=100, messages=100_000) == 15_000_000
    assert storage.optimized_marginal_cost(key=50, messages=100_000) == 5_000_000


@pytest.mark.parametrize("given", [SMALL, LARGE])
def test_the_marginal_cost_is_that_of_one_more_operation(given: dict[str, int]) -> None:
    more = {**given, "components": given["components"] + 1}
    sizes = {name: given[name] for name in ("key", "content", "messages")}
    added = storage.unoptimized_cost(**more) - storage.unoptimized_cost(**given)
    assert added == storage.unoptimized_marginal_cost(**sizes)
    added = storage.optimized_cost(**more) - storage.optimized_cost(**given)
    assert added == storage.optimized_marginal_cost(key=given["key"], messages=given["messages"])


def test_one_operation_saves_nothing() -> None:
    assert storage.saved_percent(key=50, content=100, messages=7, components=1) == 0
