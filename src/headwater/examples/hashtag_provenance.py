"""The provenance of a hashtag count by the million, without running it.

It is what the instrumented Hadoop job of the paper publishes: the tasks of a wave run at once, one
on each node, so that their map executions are interleaved; at a task's end it combines what it has;
when all tasks are done, the reduces run. Each edge tells its function, execution, node and time.

>>> import tempfile
>>> made = provenance(tempfile.mkdtemp(), 2_000, files=2)
>>> len(made.files), made.edges >= 2_000
(2, True)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import HeadwaterError
from headwater.examples import stream
from headwater.examples.line_files import LineFiles

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from pathlib import Path

    from headwater.examples.stream import Bools, Ints

TASK = 2_000
"""Tweets of a task."""

HASHTAGS = 20_000
"""How many different ones there are; the first are by far the most common."""

_MOST_IN_A_GROUP = 1_000
_EDGES_AT_ONCE = 200_000
_WORDS = ("football", "tennis", "cycling", "premiere", "oscars", "election", "debate", "concert")


@dataclass(frozen=True, slots=True)
class Made:
    """What was written."""

    files: list[Path]
    edges: int
    bytes: int
    tweets: int
    hashtags: int
    dependencies: int
    """Pairs of an output, a hashtag's count, and an input, a tweet that has the hashtag."""


def provenance(
    path: str | os.PathLike[str],
    edges: int = 1_000_000,
    files: int = 8,
    nodes: int = 5,
    group: bool = True,
    *,
    tagged: float = 0.4,
    slow: int | None = None,
    seed: int = 7,
    end: str | None = None,
) -> Made:
    """Writes the provenance of a count with at least so many edges, and few more, to a new folder.

    With `group` an execution's edges are one line, or several if they are many; else an edge is a
    line. `tagged` is the share of tweets with hashtags, `slow` a node that takes ten times as long,
    `end` the job whose end the last line tells.
    """
    stream.require("edges", edges, files, tagged=tagged)
    if nodes < 1:
        raise HeadwaterError(f"nodes={nodes} is not a number of nodes")
    job = _Job.of(edges, nodes, tagged, slow, seed)
    with LineFiles(path, "provenance", files, job.edges) as target:
        for told in job.told():
            lines, counts = told.groups() if group else told.lines()
            target.write(lines, counts)
        target.close(f'{{"type":"end","job":"{end}"}}\n' if end else "")
    tags, tweets = len(np.unique(job.tag)), np.unique(job.tag * job.tweets + job.tweet)
    return Made(target.done, job.edges, target.bytes, job.tweets, tags, len(tweets))


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    """The tweets and, for each pair of a hashtag and a one, whose it is and which hashtag."""

    tweets: int
    edges: int
    nodes: int
    slow: int | None
    seed: int
    tweet: Ints
    place: Ints
    """The how-manieth of its tweet a pair is."""
    tag: Ints

    @classmethod
    def of(cls, edges: int, nodes: int, tagged: float, slow: int | None, seed: int) -> _Job:
        """As many tweets as it takes for so many edges."""
        # One edge for a tweet at least; more tweets than needed are cut off again.
        few = max(1, min(edges, int(edges / (1 + 5 * tagged) * 1.2) + 100))
        for tweets in (few, edges):
            ids = np.arange(tweets, dtype=np.int64)
            chance = stream.noise(ids, seed)
            has = chance % 10_000 < tagged * 10_000
            counts = np.where(has, 1 + np.minimum(chance // 10_000 % 4, chance // 40_000 % 4), 0)
            tweet = np.repeat(ids, counts)
            place = np.arange(len(tweet)) - np.repeat(np.cumsum(counts) - counts, counts)
            share = stream.noise(tweet * 8 + place, seed + 1) / float(1 << 63)
            tag = np.floor(np.exp(share * np.log(HASHTAGS + 1))).astype(np.int64) - 1
            so_far = ids + 1 + 2 * np.cumsum(counts)
            so_far += 2 * _firsts(tweet // TASK * HASHTAGS + tag, tweet, tweets)
            so_far += _firsts(tag, tweet, tweets)
            if so_far[-1] >= edges:
                break
        last = int(np.searchsorted(so_far, edges))
        own = tweet <= last
        return cls(last + 1, int(so_far[last]), nodes, slow, seed, tweet[own], place[own], tag[own])

    def told(self) -> Iterator[_Told]:
        """All executions in order, some at a time; one begins in each millisecond."""
        wave, begun = self.nodes * TASK, 0
        for first in range(0, self.tweets, wave):
            last = min(first + wave, self.tweets)
            begin, end = np.searchsorted(self.tweet, [first, last])
            pairs = np.arange(begin, end)
            for told in (self._maps(np.arange(first, last), pairs), self._combines(pairs)):
                yield told.begun(begun, self)
                begun += len(told.activity)
        for told in self._reduces():
            yield told.begun(begun, self)
            begun += len(told.activity)

    def _maps(self, tweets: Ints, pairs: Ints) -> _Told:
        """A tweet is used, its pairs are generated; the first lines of all tasks come first."""
        order = np.argsort(tweets % TASK, kind="stable")
        tweets = tweets[order]
        counts = np.bincount(self.tweet[pairs] - tweets.min(), minlength=len(tweets))[order]
        rows = np.repeat(np.arange(len(tweets)), counts + 1)
        places = np.arange(len(rows)) - np.repeat(np.cumsum(counts + 1) - counts - 1, counts + 1)
        names = _text(*_tweet_name(tweets))
        suffix = pa.array(["", *(f"_out{place}" for place in range(8))])
        return _Told(
            "map",
            _text(_TASK_ID, "m_", _digits(tweets // TASK, 6), "_", _offset(tweets)),
            tweets // TASK % self.nodes,
            rows,
            _text(names.take(pa.array(rows)), suffix.take(pa.array(places))),
            places > 0,
        )

    def _combines(self, pairs: Ints) -> _Told:
        """The pairs of each hashtag of a task; tasks come to their ends about together."""
        keys = self.tweet[pairs] // TASK * HASHTAGS + self.tag[pairs]
        pairs, keys = pairs[np.argsort(keys, kind="stable")], np.sort(keys)
        known, counts = np.unique(keys, return_counts=True)
        tasks, tags = np.divmod(known, HASHTAGS)
        # By their numbers within the tasks.
        rank = np.arange(len(known)) - np.searchsorted(tasks, tasks)
        order = np.argsort(rank, kind="stable")
        starts = (np.cumsum(counts) - counts)[order]
        used = pairs[_ranges(starts, counts[order])]
        names = _text(*_tweet_name(self.tweet[used]), "_out", _digits(self.place[used], 1))
        tasks, tags = tasks[order], tags[order]
        activity = _text(*_attempt("m", tasks), _tag_name(tags))
        node, made = tasks % self.nodes, _text(activity, "_out")
        return _sums("combine", activity, node, counts[order], names, made)

    def _reduces(self) -> Iterator[_Told]:
        """The combined values of each hashtag of all tasks."""
        known = np.unique(self.tag * (1 << 32) + self.tweet // TASK)
        tags, counts = np.unique(known >> 32, return_counts=True)
        ends = np.cumsum(counts)
        for first, last in _chunks(ends):
            chosen, own = tags[first:last], counts[first:last]
            part = known[ends[first] - counts[first] : ends[last - 1]]
            names = _text(*_attempt("m", part & 0xFFFFFFFF), _tag_name(part >> 32), "_out")
            node = stream.noise(chosen, self.seed + 2) % self.nodes
            activity = _text(*_attempt("r", node), _tag_name(chosen))
            made = _text("hashtags/", _tag_name(chosen))
            yield _sums("reduce", activity, node, own, names, made)


@dataclass(frozen=True, slots=True, eq=False)
class _Told:
    """Some executions, and their edges; `rows` says which execution an edge is of."""

    function: str
    activity: pa.StringArray
    node: Ints
    rows: Ints
    entity: pa.StringArray
    made: Bools
    """Whether the activity generated the entity; else it used it."""
    time: Ints | None = None

    def begun(self, first: int, job: _Job) -> _Told:
        """The same with times: executions begin one after the other, what they make is later."""
        begun = first + np.arange(len(self.activity))
        lasting = 1 + stream.noise(begun, job.seed + 3) % 9
        if job.slow is not None:
            lasting = np.where(self.node == job.slow, lasting * 10, lasting)
        time = begun[self.rows] + np.where(self.made, lasting[self.rows], 0)
        return replace(self, time=stream.START * 1000 + time)

    def lines(self) -> tuple[pa.StringArray, Ints]:
        """A line for each edge, and how many edges each is."""
        rows = pa.array(self.rows)
        activity = self.activity.take(rows)
        node, time = _text("node-", _digits(self.node, 1)), pa.array(self.time).cast(pa.string())
        types = pa.array(["used", "wasGeneratedBy"]).take(pa.array(self.made.astype(np.int8)))
        text = _text(
            '{"type":"', types, '","activity":"', activity, '","entity":"', self.entity,
            f'","function":"{self.function}","execution":"', activity,
            '","node":"', node.take(rows), '","time":', time, "}",
        )  # fmt: skip
        return text, np.ones(len(text), np.int64)

    def groups(self) -> tuple[pa.StringArray, Ints]:
        """A line for the edges of an execution, several if they are too many for one."""
        edges, _ = self.lines()
        first = np.searchsorted(self.rows, self.rows)
        piece = (np.arange(len(edges)) - first) // _MOST_IN_A_GROUP
        begins = np.diff(self.rows, prepend=-1).astype(bool) | np.diff(piece, prepend=0).astype(
            bool
        )
        starts = np.flatnonzero(begins)
        bounds = pa.array(np.append(starts, len(edges)), pa.int32())
        joined = pc.binary_join(pa.ListArray.from_arrays(bounds, edges), ",")
        return _text('{"group":[', joined, "]}"), np.diff(np.append(starts, len(edges)))


_TASK_ID = "task_2501_0001_"


def _sums(
    function: str, activity: pa.Array, node: Ints, counts: Ints, used: pa.Array, made: pa.Array
) -> _Told:
    """Executions that use some entities and make one, which is told last."""
    rows = np.repeat(np.arange(len(counts)), counts + 1)
    last = np.zeros(len(rows), bool)
    last[np.cumsum(counts + 1) - 1] = True
    places = np.where(last, len(used) + rows, np.cumsum(~last) - 1)
    entity = pa.concat_arrays([used, made]).take(pa.array(places))
    return _Told(function, activity, node, rows, entity, last)


def _tweet_name(tweets: Ints) -> tuple[Any, ...]:
    """As the paper's job names lines: by their file and where in it they begin."""
    return "tweets-", _digits(tweets // TASK, 6), "_", _offset(tweets)


def _attempt(kind: str, tasks: Ints) -> tuple[Any, ...]:
    return f"attempt_2501_0001_{kind}_", _digits(tasks, 6), "_0_"


def _tag_name(tags: Ints) -> pa.StringArray:
    words = pa.array(_WORDS).take(pa.array(tags % len(_WORDS)))
    return _text("#", words, _digits(tags // len(_WORDS), 1))


def _offset(tweets: Ints) -> pa.StringArray:
    return _digits(tweets % TASK * 173, 9)


def _digits(numbers: Ints, width: int) -> pa.StringArray:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")


def _text(*parts: pa.StringArray | str) -> pa.StringArray:
    return pc.binary_join_element_wise(*parts, "")


def _firsts(keys: Ints, tweet: Ints, tweets: int) -> Ints:
    """How many different keys the pairs of each tweet and those before it have."""
    _, first = np.unique(keys, return_index=True)
    so_far: Ints = np.cumsum(np.bincount(tweet[first], minlength=tweets))
    return so_far


def _ranges(starts: Ints, counts: Ints) -> Ints:
    """The places from each start on, as many as counted."""
    before = np.cumsum(counts) - counts
    found: Ints = np.arange(int(counts.sum())) + np.repeat(starts - before, counts)
    return found


def _chunks(ends: Ints) -> Iterator[tuple[int, int]]:
    """Ranges of what ends at these places, each of about as much as is made at once."""
    first = 0
    while first < len(ends):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + _EDGES_AT_ONCE)))
        yield first, last
        first = last
