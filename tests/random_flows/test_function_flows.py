"""Functions, services and concise extremes: random flows equal the reference interpreter's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from pyspark.sql import SparkSession

from headwater.testing.function_strategies import FUNCTION_THEMES, function_programs
from headwater.testing.strategies import RandomProgram
from tests.random_flows.coverage import Coverage
from tests.random_flows.test_random_flows import check_program
from tests.support import amount, full

pytestmark = pytest.mark.spark

EXAMPLES = amount(1, 15)
BATCHES = (3, 7) if full() else (3, 4)


@pytest.fixture(scope="module")
def coverage() -> Coverage:
    return Coverage()


def test_results_and_provenance_equal_the_interpreters(
    interpreted: SparkSession, tmp_path: Path, coverage: Coverage
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
    @given(function_programs(FUNCTION_THEMES, BATCHES))
    def check(program: RandomProgram) -> None:
        nonlocal number
        number += 1
        if not wrong:
            problems = check_program(program, interpreted, tmp_path / str(number), coverage)
            if problems:
                wrong.append("\n\n".join([f"\nprogram {number}:\n{program!r}", *problems]))
            else:
                shutil.rmtree(tmp_path / str(number))

    check()
    assert not wrong, wrong[0]


def test_the_function_flows_had_everything_in_them(coverage: Coverage) -> None:
    """The test above can't be passing on flows in which nothing happens."""
    if not coverage.flows:
        pytest.skip("runs after the random flows")
    print(f"\nfunction flows: {coverage}")
    assert coverage.flows == EXAMPLES * len(FUNCTION_THEMES)
    assert coverage.results > 4 * coverage.flows
    assert coverage.happened["windows late"] > coverage.flows / 4
    assert coverage.modes["intervals"] + coverage.modes["ancestors"] > coverage.flows / 2
    assert {"map", "answers", "failures", "concise", "concise session"} <= set(coverage.features)
