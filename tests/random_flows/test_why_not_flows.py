"""Why not on random flows: every record has an end, and none that the interpreter contradicts."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from pyspark.sql import SparkSession

import headwater as hw
from headwater.flow import nodes
from headwater.replay.fates import KINDS
from headwater.testing import Counters, Input, interpret
from headwater.testing.strategies import THEMES, RandomProgram, programs
from tests.random_flows.comparing import Comparison, compare
from tests.random_flows.running import (
    Actual,
    build,
    recorded_input,
    run,
    stored,
    write_files,
)
from tests.support import amount, full

pytestmark = pytest.mark.spark

GROUPS = (THEMES[::2], THEMES[1::2]) if full() else (THEMES[::2],)
EXAMPLES = amount(1, 12)
BATCHES = (3, 7) if full() else (3, 5)
WITHOUT, WITH = amount(3, 6), 1
"""How many records of a flow are asked for, in no set and in some."""
FAR = 4_102_444_800_000
"""A watermark (ms) that closes everything."""

Record = tuple[str, int]


@dataclass
class Asked:
    """What the answers of this session were."""

    records: int = 0
    refused: int = 0
    kinds: Counter[str] = field(default_factory=Counter)


@pytest.fixture(scope="module")
def asked() -> Asked:
    return Asked()


@pytest.mark.parametrize("themes", GROUPS, ids=lambda themes: themes[0])
def test_the_answers_agree_with_the_interpreter(
    themes: tuple[str, ...], interpreted: SparkSession, tmp_path: Path, asked: Asked
) -> None:
    wrong: list[str] = []
    number = 0

    @seed(20240311)
    @settings(
        max_examples=EXAMPLES + 1,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(programs(themes, BATCHES))
    def check(program: RandomProgram) -> None:
        nonlocal number
        number += 1
        # Hypothesis begins with the simplest program, of which there is little to say.
        if wrong or number == 1:
            return
        folder = tmp_path / str(number)
        problems = check_program(program, interpreted, folder, asked)
        if problems:
            wrong.append("\n\n".join([f"\nprogram {number}:\n{program!r}", *problems]))
        else:
            shutil.rmtree(folder)

    check()
    assert not wrong, wrong[0]


def check_program(
    program: RandomProgram, spark: SparkSession, folder: Path, asked: Asked
) -> list[str]:
    """What is wrong with the answers about some records, sink by sink."""
    for source in program.data:
        write_files(source, folder / source.name)
    flow = build(program, spark, folder)
    place = run(flow, folder, "eager")
    given_ = recorded_input(flow, place / "checkpoint", folder)
    store = hw.open(str(place / "store"))
    random = Random(len(program.text))
    problems = []
    for name, sink in flow.sinks.items():
        actual = stored(place, name, traced=True)
        told = Told(sink, given_, actual, compare(sink, given_, actual))
        for source, id_ in chosen(told, random):
            asked.records += 1
            try:
                answer = store.why_not(source, id_, sink=name)
            except hw.UnsupportedError as error:
                asked.refused += 1
                if "Spark's choice" not in str(error) and "zones" not in str(error):
                    problems.append(f"{name}: {source} {id_}: {error}")
                if "Spark's choice" in str(error) and not told.found.counters.choices:
                    problems.append(f"{name}: {source} {id_}: there was no choice: {error}")
                continue
            except hw.HeadwaterError as error:
                problems.append(f"{name}: {source} {id_}: {error}")
                continue
            kinds = Counter(answer["kind"].to_pylist())
            asked.kinds += kinds
            problems += [
                f"{name}: {source} {id_}: {what}; watermarks {list(given_.watermarks)}, "
                f"answer {answer.select(['kind', 'detail', 'values']).to_pylist()}"
                for what in told.contradictions((source, id_), kinds)
            ]
    store.close()
    return problems


class Told:
    """What the interpreter says of a sink: by the run's end, and had everything closed."""

    def __init__(
        self, sink: nodes.Sink, given_: Input, actual: Sequence[Actual], found: Comparison
    ) -> None:
        assert not found.text, found.text
        self.found = found
        self.edges = Counter(record for result in actual for record in result.provenance)
        places = [*given_.places, {}] if given_.places is not None else None
        longer = replace(
            given_,
            batches=[*given_.batches, {}],
            watermarks=[*given_.watermarks, FAR],
            places=places,
        )
        results = interpret(sink, longer, choose=found.choices, counters=Counters())
        self.in_the_end = Counter(record for result in results for record in result.provenance)
        sources = [n for n in sink.upstream() if isinstance(n, nodes.Source) and n.streaming]
        self.records = sorted(
            {
                (source.name, row[0])
                for source in sources
                for batch in given_.batches
                for row in batch[source.name]
            }
        )

    def contradictions(self, record: Record, kinds: Counter[str]) -> list[str]:
        """What an answer has against it."""
        counters = self.found.counters
        wrong = []
        if not kinds or not set(kinds) <= set(KINDS):
            wrong.append(f"no ends, or unknown ones: {set(kinds)}")
        if kinds["reached"] != self.edges[record]:
            wrong.append(f"reached {kinds['reached']} times, with {self.edges[record]} edges")
        if set(kinds) == {"late"} and record not in counters.late_ids:
            wrong.append("only late, and the interpreter dropped nothing of it")
        if kinds["late"] and not counters.late_windows and record not in counters.late_ids:
            wrong.append("late, and the interpreter dropped nothing of it")
        if record in counters.never_counted() and not kinds["late"]:
            wrong.append("the interpreter dropped all of it as late")
        if self.in_the_end[record] > self.edges[record] and not kinds["open"]:
            wrong.append("it is part of something open, and no end says so")
        if kinds["duplicate"] and not counters.duplicates:
            wrong.append("a duplicate, and the interpreter found none")
        if kinds["unread"]:
            wrong.append("all records were read")
        return wrong


def chosen(told: Told, random: Random) -> list[Record]:
    """Some records that are in no set, and some that are."""
    without = [record for record in told.records if not told.edges[record]]
    with_ = [record for record in told.records if told.edges[record]]
    return [
        *random.sample(without, min(WITHOUT, len(without))),
        *random.sample(with_, min(WITH, len(with_))),
    ]


def test_there_was_something_to_ask(asked: Asked) -> None:
    """The test above can't be passing on records that all end alike."""
    if not asked.records:
        pytest.skip("runs after the random flows")
    print(f"\nwhy not: {asked}")
    assert asked.refused <= asked.records / 4
    assert {"reached", "late", "filtered", "open"} <= set(asked.kinds)
    if full():
        assert {"unmatched", "duplicate", "nothing"} <= set(asked.kinds)
