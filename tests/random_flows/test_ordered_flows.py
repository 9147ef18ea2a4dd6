"""Exact over arrival order too: random flows on Spark equal the reference interpreter's."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headwater.capture.choosing import refusal
from headwater.errors import HeadwaterError
from headwater.testing import TiedError
from headwater.testing.ordered_strategies import ORDERED_THEMES, ordered_programs
from headwater.testing.strategies import RandomProgram
from tests.random_flows.comparing import compare, compare_rows
from tests.random_flows.coverage import Coverage
from tests.random_flows.running import build, recorded_input, run, stored, write_files
from tests.support import amount, full

pytestmark = pytest.mark.spark

GROUPS = (ORDERED_THEMES[::2], ORDERED_THEMES[1::2])
"""The themes that share a query: half of them each."""

EXAMPLES = amount(2, 11)
BATCHES = (3, 4)
WITHOUT = 3
"""Each start of these steps takes long: of a full run, every third program runs without capture."""


@dataclass
class OrderedCoverage(Coverage):
    """What the flows had in them; `kinds` counts the steps on the way to some result."""

    tied: int = 0
    kinds: Counter[str] = field(default_factory=Counter)


@pytest.fixture(scope="module")
def coverage() -> OrderedCoverage:
    return OrderedCoverage()


@pytest.mark.parametrize("themes", GROUPS, ids=lambda themes: themes[0])
def test_results_and_provenance_equal_the_interpreters(
    themes: tuple[str, ...], interpreted: SparkSession, tmp_path: Path, coverage: OrderedCoverage
) -> None:
    wrong: list[str] = []
    number = 0

    @seed(20240127)
    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(ordered_programs(themes, BATCHES))
    def check(program: RandomProgram) -> None:
        nonlocal number
        number += 1
        # Hypothesis begins with the simplest program: a small sample has better ones. After a
        # failure the rest is left out; Hypothesis would only run it again and again.
        if not wrong and (number > 1 or full()):
            try:
                folder = tmp_path / str(number)
                without = not full() or number % WITHOUT == 0
                problems = check_program(program, interpreted, folder, coverage, without=without)
            except (HeadwaterError, PySparkException) as error:
                problems = [f"{type(error).__name__}: {error}"]
            if problems:
                wrong.append("\n\n".join([f"\nprogram {number}:\n{program!r}", *problems]))
            else:
                shutil.rmtree(tmp_path / str(number))

    check()
    assert not wrong, wrong[0]


def check_program(
    program: RandomProgram,
    spark: SparkSession,
    folder: Path,
    coverage: OrderedCoverage,
    *,
    without: bool,
) -> list[str]:
    """What is wrong with the runs of a program, sink by sink, `without` capture too if asked."""
    for source in program.data:
        write_files(source, folder / source.name)
    flow = build(program, spark, folder)
    eager = run(flow, folder, "eager")
    none = run(flow, folder, "none") if without else None
    given_ = recorded_input(flow, eager / "checkpoint", folder)
    given_none = recorded_input(flow, none / "checkpoint", folder) if none else None
    coverage.features.update(program.features)
    coverage.empty_batches += sum(not any(batch.values()) for batch in given_.batches)
    problems = []
    for name, sink in flow.sinks.items():
        if any(refusal(flow, sink, mode) is None for mode in ("intervals", "ancestors")):
            problems.append(f"{name}: a lazy capture takes a step over arrival order")
        actual = stored(eager, name, traced=True)
        in_sets = frozenset(i for a in actual for i in a.provenance)
        try:
            found = compare(sink, given_, actual)
            if none is not None and given_none is not None:
                plain = stored(none, name, traced=False)
                bare = compare(sink, given_none, plain, traced=False, likely=in_sets)
                if bare.text:
                    problems.append(f"{name} with capture none:\n{bare.text}")
                if not found.counters.choices:
                    problems += compare_rows(name, actual, plain)
        except TiedError:
            # Only a hash says in which order two of its rows arrived.
            coverage.tied += 1
            continue
        if found.text:
            problems.append(f"{name}:\n{found.text}\nwatermarks {list(given_.watermarks)}")
        late = in_sets & found.counters.never_counted()
        if late:
            problems.append(f"{name}: late records in sets: {sorted(late)}")
        coverage.add(actual, found.counters)
        if actual:
            coverage.kinds.update({node.kind for node in sink.upstream()})
    return problems


def test_the_ordered_flows_had_everything_in_them(coverage: OrderedCoverage) -> None:
    """The test above can't be passing on flows in which nothing happens."""
    if not coverage.flows:
        pytest.skip("runs after the random flows")
    print(f"\nordered flows: {coverage}; {coverage.tied} tied; with results: {coverage.kinds}")
    assert coverage.flows >= amount(8, 100)
    assert coverage.results > 4 * coverage.flows
    assert coverage.tied <= coverage.flows / 5
    missing = ORDERED_KINDS - set(coverage.kinds)
    assert not missing, f"no random flow had results behind {sorted(missing)}"
    if full():
        unseen = EVERYTHING - set(coverage.features)
        assert not unseen, f"no random flow had {sorted(unseen)}"


ORDERED_KINDS = {
    "b_sort",
    "count_window",
    "join_last",
    "join_latest",
    "join_value",
    "merge",
    "value_window",
}
"""The steps that even the small sample must have results behind."""

EVERYTHING = {
    "by event time or window",
    "collect_set",
    "join_last of rows",
    "join_last of time",
    "join_latest left",
    "join_latest outer",
    "join_latest right",
    "join_value of numbers",
    "join_value of times",
    "merge of 2",
    "merge of 3",
    "order_by",
    "order_by of a join",
    "order_by without places",
    "ordered self join",
    "value_window of numbers",
    "value_window of time",
}
"""Forms of the steps that a full run must have seen."""
