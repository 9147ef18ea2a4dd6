"""Equations 2 to 5 against their sums, exact fractions and known values."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import FlowError
from headwater.sustain import Steady
from headwater.sustain.erlang import erlang_c, poisson_ratio


def by_the_book(load: Fraction, slots: int) -> tuple[float, float, float]:
    """K, C and w as the equations stand, in exact fractions."""
    terms = [load**i / math.factorial(i) for i in range(slots + 1)]
    busy = load / slots
    ratio = sum(terms[:-1], Fraction(0)) / sum(terms, Fraction(0))
    waits = (1 - ratio) / (1 - busy * ratio)
    return float(ratio), float(waits), float(waits * busy / (1 - busy))


@settings(deadline=None)
@given(slots=st.integers(1, 40), busy=st.integers(1, 99))
def test_the_recurrence_is_the_sums(slots: int, busy: int) -> None:
    load = Fraction(busy * slots, 100)
    ratio, waits, waiting = by_the_book(load, slots)
    assert poisson_ratio(float(load), slots) == pytest.approx(ratio, rel=1e-9)
    assert erlang_c(float(load), slots) == pytest.approx(waits, rel=1e-9)
    steady = Steady(rate=float(load), service=1.0, slots=slots)
    assert steady.waiting == pytest.approx(waiting, rel=1e-9)
    assert steady.in_transit == pytest.approx(steady.rate * steady.time)  # Little


def test_thousands_of_slots_neither_overflow_nor_lose_their_digits() -> None:
    waits, load = erlang_c(4_900, 5_000), Fraction(4_900)
    blocked = Fraction(1)
    for slot in range(1, 400):  # the same recurrence in exact fractions, as far as that is cheap
        blocked = load * blocked / (slot + load * blocked)
        blocked = blocked.limit_denominator(10**40)
    assert 0.05 < waits < 0.2
    assert poisson_ratio(4_900, 399) == pytest.approx(1 - float(blocked), rel=1e-9)


def test_one_slot_is_the_textbooks() -> None:
    """M/M/1: ρ²/(1−ρ) wait, 1/(μ−λ) is the time."""
    steady = Steady(rate=0.8, service=1.0, slots=1)
    assert steady.waiting == pytest.approx(0.8**2 / 0.2)
    assert steady.time == pytest.approx(1 / (1 - 0.8))


def test_a_full_queue_never_settles() -> None:
    full = Steady(rate=5, service=0.2, slots=1)
    assert (full.sustainable, full.waiting, full.in_transit) == (False, math.inf, math.inf)
    assert Steady(rate=0, service=0.2, slots=1).time == 0.2
    with pytest.raises(FlowError, match="1 slot or more"):
        Steady(rate=1, service=1, slots=0)


@settings(deadline=None)
@given(rate=st.floats(0.01, 50), slots=st.integers(1, 300), busy=st.floats(0.01, 0.95))
def test_the_limit_is_above_what_is_expected(rate: float, slots: int, busy: float) -> None:
    steady = Steady(rate, busy * slots / rate, slots)
    assert steady.limit() > steady.in_transit
