"""Random flows and graphs over topics: equal to the reference interpreter, and as checked."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from pyspark.sql import SparkSession

from headwater.testing.strategies import THEMES, RandomProgram, programs
from tests.kafka.feed import TopicFeed
from tests.kafka.topics import Topics
from tests.live.random_graphs import Seen, graph_programs, problems, run_live
from tests.live.test_random_graphs import for_each
from tests.random_flows.coverage import Coverage
from tests.random_flows.running import build, fed_by
from tests.random_flows.test_random_flows import check_program
from tests.support import amount

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "themes",
    [
        THEMES[:1],
        pytest.param(THEMES[::2], marks=pytest.mark.long),
        pytest.param(THEMES[1::2], marks=pytest.mark.long),
    ],
    ids=lambda themes: f"{themes[0]} of {len(themes)}",
)
def test_results_and_provenance_equal_the_interpreters(
    themes: tuple[str, ...], topics: Topics, interpreted: SparkSession, tmp_path: Path
) -> None:
    wrong: list[str] = []
    coverage, number = Coverage(), 0

    @seed(20261117)
    @settings(
        max_examples=amount(1, 5),
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(programs(themes, (3, 4)))
    def check(program: RandomProgram) -> None:
        nonlocal number
        number += 1
        if not wrong:
            found = check_program(program, interpreted, tmp_path / str(number), coverage)
            if found:
                wrong.append("\n\n".join([f"\nprogram {number}:\n{program!r}", *found]))
            else:
                shutil.rmtree(tmp_path / str(number), ignore_errors=True)

    with fed_by(TopicFeed(topics)):
        check()
    assert not wrong, wrong[0]
    assert coverage.results > 0


def test_graphs_satisfy_what_the_checker_asks(
    topics: Topics, interpreted: SparkSession, tmp_path: Path
) -> None:
    seen = Seen()

    def check(program: RandomProgram, folder: Path, number: int) -> list[str]:
        flow = build(program, interpreted, folder)
        finish = number % 2 == 1
        live = run_live(flow, folder, "run", "tight", finish=finish)
        return problems(flow, program, live, "tight", seen, finished=finish)

    with fed_by(TopicFeed(topics)):
        for_each(amount(1, 12), tmp_path, graph_programs((4, 5)), check)
    assert seen.totals["labels"] > 0
    assert seen.totals["edges"] > 0
