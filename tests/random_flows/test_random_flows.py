"""Exact: results and provenance of random flows on Spark equal the reference interpreter's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from pyspark.sql import SparkSession

from headwater.testing.strategies import THEMES, RandomProgram, programs
from tests.random_flows import lazily
from tests.random_flows.comparing import compare, compare_rows
from tests.random_flows.coverage import Coverage
from tests.random_flows.running import (
    build,
    recorded_input,
    run,
    stored,
    write_files,
)
from tests.support import amount, full

pytestmark = pytest.mark.spark

GROUPS = (THEMES[::2], THEMES[1::2])
"""The themes that share a query: half of them each."""

EXAMPLES = amount(3, 18)
BATCHES = (3, 7) if full() else (3, 5)


@pytest.fixture(scope="module")
def coverage() -> Coverage:
    return Coverage()


@pytest.mark.parametrize("themes", GROUPS, ids=lambda themes: themes[0])
def test_results_and_provenance_equal_the_interpreters(
    themes: tuple[str, ...], interpreted: SparkSession, tmp_path: Path, coverage: Coverage
) -> None:
    wrong: list[str] = []
    number = 0

    @seed(20240101)
    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(programs(themes, BATCHES))
    def check(program: RandomProgram) -> None:
        nonlocal number
        number += 1
        # After a failure the rest is left out; Hypothesis would only run it again and again.
        if not wrong:
            problems = check_program(program, interpreted, tmp_path / str(number), coverage)
            if problems:
                wrong.append("\n\n".join([f"\nprogram {number}:\n{program!r}", *problems]))
            else:
                shutil.rmtree(tmp_path / str(number))

    check()
    assert not wrong, wrong[0]


def check_program(
    program: RandomProgram, spark: SparkSession, folder: Path, coverage: Coverage
) -> list[str]:
    """What is wrong with the runs of a program, sink by sink."""
    for source in program.data:
        write_files(source, folder / source.name)
    flow = build(program, spark, folder)
    eager = run(flow, folder, "eager")
    none = run(flow, folder, "none")
    modes = lazily.modes(flow)
    lazy = run(flow, folder, "lazy", lazily.by_mode(modes))
    given_ = recorded_input(flow, eager / "checkpoint", folder)
    given_none = recorded_input(flow, none / "checkpoint", folder)
    coverage.features.update(program.features)
    coverage.empty_batches += sum(not any(batch.values()) for batch in given_.batches)
    problems = []
    for name, sink in flow.sinks.items():
        actual, plain = stored(eager, name, traced=True), stored(none, name, traced=False)
        found = compare(sink, given_, actual)
        if found.text:
            problems.append(f"{name}:\n{found.text}\nwatermarks {list(given_.watermarks)}")
        in_sets = frozenset(i for a in actual for i in a.provenance)
        late = in_sets & found.counters.never_counted()
        if late:
            problems.append(f"{name}: late records in sets: {sorted(late)}")
        without = compare(sink, given_none, plain, traced=False, likely=in_sets)
        if without.text:
            problems.append(f"{name} with capture none:\n{without.text}")
        if not found.counters.choices:
            problems += compare_rows(name, actual, plain)
        coverage.add(actual, found.counters)
        coverage.modes[modes[name]] += 1
    problems += lazily.problems(flow, folder, lazy, modes, program.data, coverage.excess)
    return problems


def test_the_random_flows_had_everything_in_them(coverage: Coverage) -> None:
    """The test above can't be passing on flows in which nothing happens."""
    if not coverage.flows:
        pytest.skip("runs after the random flows")
    print(f"\nrandom flows: {coverage}")
    assert coverage.flows >= amount(30, 200)
    assert coverage.results > 8 * coverage.flows
    for what, least in {
        "rows late": 2,
        "windows late": 1,
        "duplicates dropped": 0.5,
        "survivors chosen": 0.3,
        "rows unmatched": 0.5,
        "sessions merged": 0.5,
        "records in no set for being late": 1,
    }.items():
        assert coverage.happened[what] >= least * coverage.flows, what
    assert coverage.empty_batches > 0
    for mode in ("intervals", "ancestors"):
        assert coverage.modes[mode] >= coverage.flows / 4, coverage.modes
    assert coverage.excess.results > coverage.flows
    missing = (EVERYTHING if full() else SAMPLE) - set(coverage.features)
    assert not missing, f"no random flow had {sorted(missing)}"


SAMPLE = {
    "filter",
    "select",
    "with_column",
    "rename",
    "drop",
    "alias",
    "flat_map",
    "tumbling",
    "sliding",
    "offset",
    "session",
    "window of window",
    "chained",
    "dedup all",
    "dedup within",
    "join inner",
    "join outer",
    "join by time",
    "join by window",
    "self join",
    "window_time",
    "withWatermark",
}
"""What even the small sample has."""

EVERYTHING = SAMPLE | {
    "unionByName",
    "by event time",
    "by window column",
    "dedup with time",
    "dedup without time",
    "explode",
    "explode_outer",
    "posexplode",
    "posexplode_outer",
    "key expression",
    "static plain inner",
    "static plain outer",
    "static traced inner",
    "static traced outer",
    "time pruned",
    "union",
    "union missing",
    "union of a join",
    "window alias",
    "window fields",
}
