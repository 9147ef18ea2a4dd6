"""`kill -9` of flows over topics, and start again: nothing is lost or doubled, in any store."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kafka.feed import TopicFeed
from tests.kafka.topics import Topics
from tests.random_flows.running import fed_by
from tests.restart import job
from tests.restart.test_restart import POINTS, Job, check, check_live
from tests.support import amount
from tests.support.kafka import Broker

pytestmark = pytest.mark.spark
LONG = pytest.mark.long
LAKE_POINTS = ("before", "noted", "inside", "after")


@pytest.fixture
def feed(topics: Topics) -> Iterator[TopicFeed]:
    """Topics in the place of files, for what the job reads and for what is checked."""
    made = TopicFeed(topics, partitions=2, bad=7)
    with fed_by(made):
        yield made


@pytest.fixture
def killed(kafka: Broker, tmp_path: Path) -> Job:
    """The job of the restart tests, with Spark's connector."""
    made = Job(tmp_path)
    made.environment |= kafka.environment
    return made


def generate(feed: TopicFeed, home: Path, seed: int, *asked: str) -> None:
    """Two topics of some batches, and files that ask the job for more."""
    job.generate(home, sources=2, files=amount(5, 8), seed=seed)
    feed.write_options(home)
    for name in asked:
        (home / name).touch()


def kill_at(killed: Job, points: tuple[str, ...]) -> None:
    """Kill at each point, in one batch after the other, then run to the end."""
    for n, point in enumerate(points):
        assert killed.run(point, n + 1) == -signal.SIGKILL
    assert killed.run() == 0
    assert killed.kills == len(points)


def check_letters(feed: TopicFeed, home: Path) -> None:
    """Each message that can't be decoded was told of once, and nothing is left of the telling."""
    for folder, places in feed.letters.items():
        files = (home / "store" / "dead_letters" / "restart" / folder.name).glob("*.jsonl")
        told = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        found = [(one["topic"], one["partition"], one["offset"]) for one in told]
        assert sorted(found) == sorted(places)
        assert found, "there must be some for this to mean anything"
    assert not list(home.glob("store/_headwater/letters/*"))


def test_killed_in_the_middle_of_a_batch(
    feed: TopicFeed, killed: Job, interpreted: SparkSession
) -> None:
    generate(feed, killed.home, 3)
    kill_at(killed, ("inside", "after"))
    check(interpreted, killed.home)
    check_letters(feed, killed.home)


@LONG
@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.parametrize("store", ["file", "lake"])
def test_killed_at_each_point_of_a_batch(
    seed: int, store: str, feed: TopicFeed, killed: Job, interpreted: SparkSession
) -> None:
    asked = [job.LAKE] if store == "lake" else []
    generate(feed, killed.home, seed, job.LIVE, *asked)
    kill_at(killed, LAKE_POINTS if asked else POINTS)
    checked = check_live(interpreted, killed.home)
    assert checked.labels > 20
    assert checked.alive
    check_letters(feed, killed.home)
