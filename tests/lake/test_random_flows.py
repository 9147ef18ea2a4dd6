"""Random flows whose store is a lake: results and provenance equal the reference interpreter's.

Spark's answers about the lake equal DuckDB's.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from pyspark.sql import SparkSession

import headwater as hw
from headwater.testing.strategies import THEMES, RandomProgram, programs
from tests.lake.same import differences
from tests.random_flows.coverage import Coverage
from tests.random_flows.running import on_lake
from tests.random_flows.test_random_flows import check_program
from tests.support import amount

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "themes",
    # The store can't tell the themes apart, and the file's own tests have them all: half will do.
    [THEMES[::2], pytest.param(THEMES[1::2], marks=pytest.mark.long)],
    ids=lambda themes: themes[0],
)
def test_results_and_provenance_equal_the_interpreters(
    themes: tuple[str, ...], interpreted: SparkSession, tmp_path: Path
) -> None:
    wrong: list[str] = []
    number = 0

    @seed(20261116)
    @settings(
        max_examples=amount(1, 12),
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(programs(themes, (3, 5)))
    def check(program: RandomProgram) -> None:
        nonlocal number
        number += 1
        if not wrong:
            with on_lake():
                problems = check_program(program, interpreted, tmp_path / str(number), Coverage())
            with hw.open(f"delta:{tmp_path / str(number) / 'eager' / 'store'}") as store:
                problems += differences(store, interpreted)
            if problems:
                wrong.append("\n\n".join([f"\nprogram {number}:\n{program!r}", *problems]))
            else:
                shutil.rmtree(tmp_path / str(number))

    check()
    assert not wrong, wrong[0]
