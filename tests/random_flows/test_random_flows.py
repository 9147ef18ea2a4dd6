"""Exact: results and provenance of random flows on Spark equal the reference interpreter's."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from pyspark.sql import SparkSession

from headwater.testing.strategies import THEMES, RandomProgram, programs
from tests.random_flows.comparing import compare
from tests.random_flows.running import (
    Actual,
    build,
    recorded_input,
    run,
    stored,
    write_files,
)
from tests.random_flows.values import shown
from tests.support import amount, full

pytestmark = pytest.mark.spark

GROUPS = (THEMES[::2], THEMES[1::2])
"""The themes that share a query: half of them each."""

EXAMPLES = amount(3, 18)
BATCHES = (3, 7) if full() else (3, 5)


@dataclass
class Coverage:
    """What the random flows of this session had in them."""

    flows: int = 0
    results: int = 0
    edges: int = 0
    empty_batches: int = 0
    happened: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        happened = ", ".join(f"{n} {what}" for what, n in sorted(self.happened.items()))
        features = ", ".join(f"{what} {n}" for what, n in sorted(self.features.items()))
        return (
            f"{self.flows} flows, {self.results} results, {self.edges} edges, "
            f"{self.empty_batches} batches without data; {happened}; steps: {features}"
        )


@pytest.fixture(scope="module")
def coverage() -> Coverage:
    return Coverage()


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark without compiling its plans: for a few rows that takes far longer than running."""
    settings_ = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    for name, value in settings_.items():
        spark.conf.set(name, value)
    yield spark
    for name in settings_:
        spark.conf.unset(name)


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
    given_ = recorded_input(flow, eager / "checkpoint", folder)
    coverage.features.update(program.features)
    coverage.empty_batches += sum(not any(batch.values()) for batch in given_.batches)
    problems = []
    for name, sink in flow.sinks.items():
        actual = stored(eager, name, traced=True)
        text, counters = compare(sink, given_, actual)
        if text:
            problems.append(f"{name}:\n{text}\nwatermarks {list(given_.watermarks)}")
        late = {i for a in actual for i in a.provenance} & counters.never_counted()
        if late:
            problems.append(f"{name}: late records in sets: {sorted(late)}")
        problems += compare_rows(name, actual, stored(none, name, traced=False), counters.choices)
        coverage.flows += 1
        coverage.results += len(actual)
        coverage.edges += sum(len(a.provenance) for a in actual)
        for what in ("late_rows", "late_windows", "duplicates", "choices", "unmatched"):
            coverage.happened[what] += getattr(counters, what)
        coverage.happened["sessions merged"] += counters.sessions_merged
        coverage.happened["records in no set for being late"] += len(counters.never_counted())
    return problems


def compare_rows(name: str, eager: list[Actual], none: list[Actual], choices: int) -> list[str]:
    """Capture must not change results; only survivors that are Spark's choice may differ."""
    with_, without = Counter(a.values for a in eager), Counter(a.values for a in none)
    if with_ == without or (choices and len(eager) == len(none)):
        return []
    lines = [f"{name}: capture changes results"]
    lines += [f"  only eager: {shown(v)}" for v in (with_ - without).elements()]
    lines += [f"  only none: {shown(v)}" for v in (without - with_).elements()]
    return ["\n".join(lines)]


def test_the_random_flows_had_everything_in_them(coverage: Coverage) -> None:
    """The test above can't be passing on flows in which nothing happens."""
    if not coverage.flows:
        pytest.skip("runs after the random flows")
    print(f"\nrandom flows: {coverage}")
    assert coverage.flows >= amount(30, 200)
    assert coverage.results > 20 * coverage.flows
    for what, least in {
        "late_rows": 50,
        "late_windows": 20,
        "duplicates": 50,
        "unmatched": 20,
        "records in no set for being late": 20,
    }.items():
        assert coverage.happened[what] >= least, f"{what}: {coverage.happened[what]}"
    assert coverage.empty_batches > 0
    missing = EXPECTED - set(coverage.features)
    assert not missing, f"no random flow had {sorted(missing)}"


EXPECTED = {
    "filter",
    "select",
    "with_column",
    "rename",
    "drop",
    "tumbling",
    "sliding",
    "session",
    "chained",
    "dedup within",
    "join inner",
    "join outer",
    "join by time",
    "window_time",
}
