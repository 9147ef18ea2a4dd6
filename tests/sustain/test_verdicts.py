"""Verdicts on simulated queues: the seed's waves, bursts, steps, steady load, noise."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.sustain import Queue, trials
from headwater.sustain.simulation import per_second, run
from headwater.sustain.verdicts import Verdict
from headwater.sustain.waves import WAVES, wave1, wave2, wave3


def told(
    arrivals: Iterable[float], service: object, until: float, slots: int = 1, **settings: float
) -> Verdict:
    """The verdict after a simulation."""
    queue = Queue("n", slots=slots, **settings)  # type: ignore[arg-type]
    return run(queue, sorted(arrivals), service, slots, until).measured().verdict  # type: ignore[arg-type]


def waving(name: str, seconds: int) -> list[float]:
    return list(per_second(WAVES[name](second) for second in range(seconds)))


def poisson(rate: float, until: float, random: random.Random, start: float = 0) -> list[float]:
    found, at = [], start
    while (at := at + random.expovariate(rate)) < until:
        found.append(at)
    return found


def exponential(seed: int) -> object:
    numbers = random.Random(seed)
    return lambda _: numbers.expovariate(1.0)


# --- the three waves ----------------------------------------------------------------------------


def test_the_waves_are_the_seeds() -> None:
    assert [wave1(x) for x in range(16)] == [1, 3, 4, 3, 1, 0, 0, 0] * 2
    assert [wave2(x) for x in range(32)] == [1, 2, 3, 3, 4, 3, 3, 2, 1, *[0] * 7] * 2
    assert [wave3(x) for x in range(16)] == [1, 0, 3, 0, 4, 0, 3, 0, 1, *[0] * 7]


@pytest.mark.parametrize("seconds", [120, 200, 300, 605, 900])
def test_growing_slowly_growing_and_healthy(seconds: int) -> None:
    """Service as in the seed: slower than the first two waves' means, faster than the third's."""
    one, two, three = (told(waving(name, seconds), 0.8, seconds) for name in WAVES)
    assert [one.state, two.state, three.state] == ["growing", "growing", "healthy"]
    assert one.slope == pytest.approx(1.5 - 1.25, rel=0.15)
    assert two.slope == pytest.approx(1.375 - 1.25, rel=0.25)


@settings(max_examples=25, deadline=None)
@given(done=st.floats(0.82, 1.3), seconds=st.integers(240, 900))
def test_at_any_service_rate_between_the_means(done: float, seconds: int) -> None:
    states = [told(waving(name, seconds), 1 / done, seconds).state for name in WAVES]
    assert states == ["growing", "growing", "healthy"]


@settings(max_examples=15, deadline=None)
@given(done=st.floats(1.6, 5.0), seconds=st.integers(60, 900))
def test_all_waves_are_healthy_where_service_is_fast(done: float, seconds: int) -> None:
    assert {told(waving(n, seconds), 1 / done, seconds).state for n in WAVES} == {"healthy"}


def test_the_time_to_exhaustion() -> None:
    verdict = told(waving("stream 1", 400), 0.8, 400, capacity=200)
    assert verdict.exhaustion == pytest.approx((200 - 100) / 0.25, rel=0.1)


# --- bursts and steps ---------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(
    size=st.integers(100, 400),
    at=st.integers(100, 500),
    takes=st.integers(0, 30),
    seed=st.integers(0, 1_000),
)
def test_a_burst_is_bursting_then_healthy(size: int, at: int, takes: int, seed: int) -> None:
    """100 to 400 events within half a minute, on a third of the load: it drains."""
    numbers = random.Random(seed)
    burst = [at + takes * n / size for n in range(size)]
    arrivals = poisson(0.3, 1_500, numbers) + burst
    queue, states = Queue("n"), []
    came = sorted(arrivals)
    for until in range(int(at) + takes + 15, 1_400, 60):
        queue = run(Queue("n"), came, exponential(seed), 1, until)
        states.append(queue.measured().verdict.state)
        if states[-1] == "healthy":
            break
    assert states[0] == "bursting"
    assert states[-1] == "healthy"
    assert set(states) == {"bursting", "healthy"}


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1_000))
def test_a_step_up_is_found_soon_and_a_step_down_too(seed: int) -> None:
    numbers = random.Random(seed)
    up = poisson(0.4, 600, numbers) + poisson(2.0, 900, numbers, 600)
    assert told(up, exponential(seed), 590).state == "healthy"
    assert told(up, exponential(seed), 850).state == "growing"
    down = poisson(1.8, 300, numbers) + poisson(0.4, 1_700, numbers, 300)
    assert told(down, exponential(seed), 290).state == "growing"
    assert told(down, exponential(seed), 500).state == "bursting"
    assert told(down, exponential(seed), 1_699).sustainable


# --- steady load with noise ---------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(
    busy=st.floats(0.05, 0.8),
    slots=st.sampled_from([1, 2, 16]),
    seconds=st.integers(60, 900),
    seed=st.integers(0, 10_000),
)
def test_steady_load_does_not_grow(busy: float, slots: int, seconds: int, seed: int) -> None:
    arrivals = poisson(busy * slots, seconds, random.Random(seed))
    verdict = told(arrivals, exponential(seed), seconds, slots)
    assert verdict.state != "growing"
    assert verdict.expected is None or verdict.expected < 1.5 * slots + 20


def test_steady_load_is_healthy_but_for_rare_moments() -> None:
    states = []
    for seed in range(40):
        arrivals = poisson(0.7, 600, random.Random(seed))
        states.append(told(arrivals, exponential(seed), 600).state)
    assert states.count("healthy") >= 39


def test_too_much_load_grows_in_spite_of_noise() -> None:
    states = []
    for seed in range(30):
        arrivals = poisson(1.5, 400, random.Random(seed))
        states.append(told(arrivals, exponential(seed), 400).state)
    assert states.count("growing") >= 29


def test_many_slots_full_of_work_are_healthy() -> None:
    arrivals = poisson(8.0, 600, random.Random(1))
    numbers = random.Random(2)
    ten = told(arrivals, lambda _: numbers.expovariate(0.1), 600, slots=100)
    assert ten.state == "healthy"
    assert ten.expected == pytest.approx(80, rel=0.1)


def test_the_trials_of_the_docs() -> None:
    assert set(trials.states(0.5, seed=1)) == {"healthy"}
    assert trials.states(1.5, seed=1)[-1] == "growing"


# --- too little, too seldom ---------------------------------------------------------------------


def test_what_is_not_yet_known() -> None:
    short = told(waving("stream 1", 40), 0.8, 40)
    assert (short.state, short.sustainable) == ("unknown", None)
    assert short.reason == "41 s of history; 48 s are needed"
    stuck = told([1.0, 2.0], 10_000.0, 300)
    assert (stuck.state, stuck.reason) == ("unknown", "2 events in 5 min; 10 are needed")
    idle = Queue("n")
    idle.look(at=0)
    idle.look(at=300)
    assert idle.measured().verdict.state == "healthy"


def test_what_is_held_back_on_purpose_is_no_burst() -> None:
    """Batches each 10 s, 50 events a second: up to 500 wait, each of them takes 1 ms."""
    batched = Queue("n", delay=10.0)
    alone = Queue("n")
    for second in range(300):
        for queue in (batched, alone):
            queue.arrived(50, at=second)
            if second % 10 == 9:
                queue.finished(500, compute=0.5, at=second + 0.5)
    assert batched.measured().verdict.state == "healthy"
    assert alone.measured().verdict.state == "bursting"
    assert batched.measured().expected == pytest.approx(500, rel=0.1)
