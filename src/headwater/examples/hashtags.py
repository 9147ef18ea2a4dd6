"""Two jobs that tell their provenance: hashtags of tweets are counted, then summed by category.

The first is a map-reduce as Hadoop would run it, in plain Python: a task for each file maps its
lines to pairs of a hashtag and a one, combines pairs of one hashtag, and after the shuffle reducers
add up what came of all tasks. Its output is the input of the second, a batch job of Spark. Both
publish with `headwater.prov`, to a folder each; `provenance` makes that of the first job alone, in
millions of edges.

>>> import tempfile
>>> from pathlib import Path
>>> home = Path(tempfile.mkdtemp())
>>> _ = generate(home / "tweets", 40, files=2)
>>> counts = count(home / "tweets", home / "counts", home / "told")
>>> sorted(counts) == sorted({tag for tweet in tweets(40) for tag in tweet.hashtags})
True
"""

from __future__ import annotations

import re
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headwater.errors import HeadwaterError
from headwater.examples import stream
from headwater.examples.hashtag_provenance import provenance
from headwater.prov import Emitter

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    import pandas as pd
    from pyspark.sql import SparkSession

    Path_ = str | os.PathLike[str]

__all__ = ["Tweet", "categorize", "category", "count", "generate", "provenance", "tweets"]

COUNT, CATEGORIZE = "count-hashtags", "categorize-hashtags"
"""The names of the jobs."""

CATEGORIES = {
    "sports": ("football", "tennis", "cycling"),
    "movies": ("premiere", "oscars"),
    "politics": ("election", "debate"),
    "music": ("concert", "album"),
}

NODES = ("node-1", "node-2", "node-3")

_WORDS = [word for words in CATEGORIES.values() for word in words]
_FILLERS = "today we saw the best of all and will be back for more of this soon".split()
_LANGUAGES = ("en", "es", "pt", "ja")
_OF_WORD = {word: name for name, words in CATEGORIES.items() for word in words}


@dataclass(frozen=True, slots=True)
class Tweet:
    """A tweet as the paper's client writes it down."""

    handle: str
    time: datetime
    language: str
    text: str

    @property
    def hashtags(self) -> list[str]:
        """Its hashtags, in small letters, as often as they are there."""
        return [word.lower() for word in self.text.split() if word.startswith("#")]

    def line(self) -> str:
        """The tweet as a line of a file."""
        return "\t".join((self.handle, self.time.isoformat(), self.language, self.text))


def tweets(number: int, seed: int = 7) -> Iterator[Tweet]:
    """So many tweets, the same for the same seed; about a third have no hashtag."""
    for at in range(number):
        one, two, *words = stream.noise(np.arange(at * 8, at * 8 + 8), seed).tolist()
        tags = [_hashtag(word) for word in words[: (0, 0, 1, 1, 2, 3)[one % 6]]]
        fillers = [_FILLERS[(two + place) % len(_FILLERS)] for place in range(4)]
        yield Tweet(
            f"user{two % 1000}",
            datetime.fromtimestamp(stream.START + at, UTC),
            _LANGUAGES[two % len(_LANGUAGES)],
            " ".join(fillers + tags),
        )


def generate(path: Path_, records: int = 300, *, files: int = 6, seed: int = 7) -> list[Path]:
    """Writes tweets into a new folder, as files of lines."""
    stream.require("tweets", records, files)
    folder = _new(path)
    made = list(tweets(records, seed))
    bounds = np.linspace(0, records, files + 1).astype(int).tolist()
    written = []
    for number in range(files):
        target = folder / f"tweets-{number:05d}.tsv"
        part = made[bounds[number] : bounds[number + 1]]
        target.write_text("".join(f"{tweet.line()}\n" for tweet in part))
        written.append(target)
    return written


def category(hashtag: str) -> str:
    """What a hashtag is about.

    >>> category("#tennis12"), category("#cats")
    ('sports', 'other')
    """
    return _OF_WORD.get(re.sub(r"[#\d]", "", hashtag), "other")


def count(path: Path_, output: Path_, told: Path_, nodes: Sequence[str] = NODES) -> dict[str, int]:
    """The first job: counts hashtags on several nodes, and publishes its provenance to `told`.

    Writes a file of hashtags and counts for each node that reduces. A tweet is the entity
    `<file>:<line>`, a count `hashtags/<hashtag>`.
    """
    folder = _new(output)
    files = sorted(Path(path).glob("*.tsv"))
    with Emitter(told, COUNT) as emitter, ThreadPoolExecutor(len(nodes)) as cluster:
        job = _MapReduce(emitter)
        where = [nodes[task % len(nodes)] for task in range(len(files))]
        mapped = list(cluster.map(job.map_task, files, where))
        shuffled: dict[str, dict[str, list[_Value]]] = {node: defaultdict(list) for node in nodes}
        for values in mapped:
            for tag, value in values.items():
                shuffled[nodes[sum(tag.encode()) % len(nodes)]][tag].append(value)
        reduced = list(cluster.map(job.reduce_task, shuffled.values(), nodes))
        emitter.end()
    for number, counts in enumerate(reduced):
        lines = (f"{tag}\t{total}\n" for tag, total in counts.items())
        (folder / f"part-r-{number:05d}.tsv").write_text("".join(lines))
    return {tag: total for counts in reduced for tag, total in counts.items()}


@dataclass(frozen=True, slots=True)
class _Value:
    """A number on its way, and the entity that it is."""

    number: int
    entity: str


@dataclass(frozen=True, slots=True)
class _MapReduce:
    """What runs on the nodes."""

    emitter: Emitter

    def map_task(self, file: Path, node: str) -> dict[str, _Value]:
        """Maps each line of a file, then combines the values of each hashtag."""
        pairs: dict[str, list[_Value]] = defaultdict(list)
        for number, line in enumerate(file.read_text().splitlines()):
            tweet = f"{file.name}:{number}"
            with self.emitter.execution("map", node=node, name=f"map/{tweet}") as run:
                run.used(tweet)
                text = line.split("\t")[-1]
                tags = [word.lower() for word in text.split() if word.startswith("#")]
                for place, tag in enumerate(tags):
                    pair = f"{tweet}/{place}"
                    run.generated(pair)
                    pairs[tag].append(_Value(1, pair))
        combined = {}
        for tag, values in pairs.items():
            entity = f"{file.name}/{tag}"
            combined[tag] = self._add_up("combine", f"combine/{entity}", node, values, entity)
        return combined

    def reduce_task(self, shuffled: dict[str, list[_Value]], node: str) -> dict[str, int]:
        """Adds up the values of each hashtag."""
        counts = {}
        for tag, values in sorted(shuffled.items()):
            entity = f"hashtags/{tag}"
            counts[tag] = self._add_up("reduce", f"reduce/{tag}", node, values, entity).number
        return counts

    def _add_up(
        self, function: str, name: str, node: str, values: Sequence[_Value], entity: str
    ) -> _Value:
        with self.emitter.execution(function, node=node, name=name) as run:
            run.used(*(value.entity for value in values))
            run.generated(entity)
            return _Value(sum(value.number for value in values), entity)


def categorize(spark: SparkSession, path: Path_, told: Path_) -> dict[str, int]:
    """The second job: sums the first one's counts by category, with Spark, and publishes so.

    Uses the entities `hashtags/<hashtag>` and makes `categories/<category>`.
    """
    # Spark and its workers may have been started in another folder.
    path, told = Path(path).resolve(), Path(told).resolve()
    told.mkdir(parents=True, exist_ok=True)
    counts = spark.read.csv(str(path), sep="\t", schema="hashtag string, n bigint")
    labelled = counts.mapInPandas(_labels(str(told)), "entity string, category string, n bigint")
    sums = labelled.groupBy("category").applyInPandas(_sums(str(told)), "category string, n bigint")
    found = {row["category"]: row["n"] for row in sums.collect()}
    Emitter(told, CATEGORIZE).end()
    return found


def _labels(told: str) -> Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    """Labels hashtags with their categories; each task has an emitter of its own."""

    def label(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        with Emitter(told, CATEGORIZE) as emitter:
            for batch in batches:
                for tag in batch["hashtag"]:
                    with emitter.execution("label", node=_task(), name=f"label/{tag}") as run:
                        run.used(f"hashtags/{tag}")
                        run.generated(f"labelled/{tag}")
                yield batch.assign(
                    entity="labelled/" + batch["hashtag"], category=batch["hashtag"].map(category)
                )[["entity", "category", "n"]]

    return label


def _sums(told: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def add_up(rows: pd.DataFrame) -> pd.DataFrame:
        name = rows["category"].iloc[0]
        with (
            Emitter(told, CATEGORIZE) as emitter,
            emitter.execution("sum", node=_task(), name=f"sum/{name}") as run,
        ):
            run.used(*rows["entity"])
            run.generated(f"categories/{name}")
            return rows[["category", "n"]].groupby("category", as_index=False).sum()

    return add_up


def _task() -> str:
    """Where this runs: a task of Spark's stands for a node."""
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    return f"task-{context.partitionId()}"


def _hashtag(noise: int) -> str:
    """Some hashtags are much more common than others."""
    return f"#{_WORDS[noise % len(_WORDS)]}{min(noise // 64 % 7, noise // 512 % 7)}"


def _new(path: Path_) -> Path:
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise HeadwaterError(f"{folder} is not empty: write into a new folder")
    return folder
