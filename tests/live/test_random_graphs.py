"""Live graphs of random flows with several sinks, as a checker of its own finds them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy
from pyspark.sql import SparkSession

from headwater.errors import HeadwaterError
from headwater.testing.graph_reach import Expiry
from headwater.testing.strategies import RandomProgram
from tests.live.random_graphs import Seen, graph_programs, is_bounded, labelled, problems, run_live
from tests.random_flows.running import build, write_files
from tests.support import amount, full

pytestmark = pytest.mark.spark

FLOWS = amount(6, 100)
TWICE = amount(1, 10)
FROM_A_SEED = 3
BATCHES = (4, 7) if full() else (4, 5)


@pytest.fixture(scope="module")
def seen() -> Seen:
    return Seen()


def for_each(
    examples: int,
    folder: Path,
    given_: SearchStrategy[RandomProgram],
    check: Callable[[RandomProgram, Path, int], list[str]],
) -> None:
    """Check random programs up to the first with which something is wrong."""
    wrong: list[str] = []
    number = 0

    def each(program: RandomProgram) -> None:
        nonlocal number
        number += 1
        # After a failure the rest is left out; Hypothesis would only run it again and again.
        if not wrong:
            place = folder / str(number)
            for source in program.data:
                write_files(source, place / source.name)
            try:
                found = check(program, place, number)
            except HeadwaterError as error:
                found = [f"{type(error).__name__}: {error}"]
            if found:
                wrong.append("\n".join([f"\nprogram {number}:\n{program!r}", "", *found]))
            else:
                shutil.rmtree(place)

    drawn(examples, given_, each)
    assert not wrong, wrong[0]


def drawn(
    examples: int,
    given_: SearchStrategy[RandomProgram],
    each: Callable[[RandomProgram], None],
) -> None:
    """Draw programs, a few from each seed: those of one seed are much like each other."""
    for start in range(0, examples, FROM_A_SEED):
        some = settings(
            max_examples=min(FROM_A_SEED, examples - start),
            phases=[Phase.generate],
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        seed(20240613 + start)(some(given(given_)(each)))()


def test_graphs_satisfy_what_the_checker_asks(
    interpreted: SparkSession, tmp_path: Path, seen: Seen
) -> None:
    def check(program: RandomProgram, folder: Path, number: int) -> list[str]:
        flow = build(program, interpreted, folder)
        finish, lake = number % 4 == 0, number % 3 == 2
        live = run_live(flow, folder, "run", "tight", finish=finish, lake=lake)
        return problems(flow, program, live, "tight", seen, finished=finish)

    for_each(FLOWS, tmp_path, graph_programs(BATCHES), check)


@pytest.mark.long
def test_tight_labels_come_no_later_than_ananke_s(
    interpreted: SparkSession, tmp_path: Path
) -> None:
    earlier = both = 0

    def check(program: RandomProgram, folder: Path, number: int) -> list[str]:
        nonlocal earlier, both
        labels, wrong = {}, []
        for expiry in EXPIRIES:
            flow = build(program, interpreted, folder)
            live = run_live(flow, folder, expiry, expiry)
            wrong += [f"{expiry}: {p}" for p in problems(flow, program, live, expiry)]
            labels[expiry] = labelled(live)
        for record, batch in labels["ananke"].items():
            tight = labels["tight"].get(record)
            both += 1
            earlier += tight is not None and tight < batch
            if tight is None or tight > batch:
                wrong.append(f"{record}: labelled in batch {batch}, but tight only in {tight}")
        earlier += len(labels["tight"].keys() - labels["ananke"].keys())
        return wrong

    for_each(TWICE, tmp_path, graph_programs(BATCHES).filter(is_bounded), check)
    assert both > 0
    assert earlier > 0, "tight labels came earlier for no record"


EXPIRIES: tuple[Expiry, ...] = ("tight", "ananke")


def test_the_random_graphs_had_everything_in_them(seen: Seen) -> None:
    """The tests above can't be passing on graphs in which nothing happens."""
    if not seen.flows:
        pytest.skip("runs after the random graphs")
    print(f"\nrandom graphs: {seen}")
    assert seen.flows >= FLOWS
    assert seen.sinks >= 2 * seen.flows
    for what, least in {
        "labels": 10,
        "alive": 5,
        "shared": 3,
        "held": 20,
        "rows late": 2,
        "windows late": 1,
        "came_again": 0.1 if full() else 0,
        "flows with labels": 0.6,
        "flows with alive records": 0.5,
        "flows with records of several sinks": 0.3,
    }.items():
        assert seen.totals[what] >= least * seen.flows, what
    missing = (EVERYTHING if full() else SAMPLE) - set(seen.features)
    assert not missing, f"no random graph had {sorted(missing)}"


SAMPLE = {"tumbling", "sliding", "session", "chained", "join outer", "dedup within"}
"""What even the small sample has."""

EVERYTHING = SAMPLE | {
    "sliding",
    "offset",
    "session",
    "chained",
    "union",
    "union of a join",
    "join inner",
    "join outer",
    "join by time",
    "join by window",
    "self join",
    "dedup within",
    "dedup with time",
    "dedup without time",
    "window of window",
    "window_time",
    "by event time",
    "by window column",
    "withWatermark",
    "window then session",
    "session of windows",
    "join then session",
    "join then window",
    "session then window",
}
