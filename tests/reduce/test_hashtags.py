"""The workflow of the paper's Figure 12: what its jobs tell is what they did."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.errors import HeadwaterError
from headwater.examples import hashtag_provenance, hashtags
from headwater.reduce.blocks import is_activity
from headwater.reduce.parsing import Parsed, parse

Edges = list[tuple[str, str]]


def told(folder: Path, job: str) -> Parsed:
    files = sorted(folder.iterdir())
    assert not any(file.name.startswith(".") for file in files)
    parsed = parse(b"".join(file.read_bytes() for file in files), job)
    assert parsed.rejected.num_rows == 0
    return parsed


def named(parsed: Parsed) -> Edges:
    """The edges by name, of activities with a mark in front."""
    marks = is_activity(parsed.ids).tolist()
    names = {
        vertex: f"activity {name}" if mark else name
        for vertex, name, mark in zip(
            parsed.ids.tolist(), parsed.names.to_pylist(), marks, strict=True
        )
    }
    rows = parsed.edges.select(["source", "destination"]).to_pylist()
    return [(names[row["source"]], names[row["destination"]]) for row in rows]


def dependencies(edges: Edges) -> dict[str, set[str]]:
    """Each output's inputs, by following edges to their ends."""
    causes = defaultdict(list)
    for source, destination in edges:
        causes[source].append(destination)
    effects = {destination for _, destination in edges}
    found = {}
    for output in set(causes) - effects:
        if output.startswith("activity "):
            continue
        seen, pending = {output}, [output]
        while pending:
            for cause in causes.get(pending.pop(), ()):
                if cause not in seen:
                    seen.add(cause)
                    pending.append(cause)
        inputs = {name for name in seen if name not in causes}
        found[output] = {name for name in inputs if not name.startswith("activity ")}
    return found


def tags_of(folder: Path) -> dict[str, set[str]]:
    """Straight from the files: the tweets that each hashtag is in."""
    found = defaultdict(set)
    for file in folder.iterdir():
        for number, line in enumerate(file.read_text().splitlines()):
            for word in line.split():
                if word.startswith("#"):
                    found[word.lower()].add(f"{file.name}:{number}")
    return found


def test_tweets_are_the_same_each_time(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        hashtags.generate(tmp_path / folder, 50, files=3)
    one, two = (sorted((tmp_path / folder).iterdir()) for folder in ("one", "two"))
    assert [file.read_text() for file in one] == [file.read_text() for file in two]
    lines = "".join(file.read_text() for file in one).splitlines()
    assert lines == [tweet.line() for tweet in hashtags.tweets(50)]
    assert [tweet.line() for tweet in hashtags.tweets(50, seed=8)] != lines
    shares = Counter(len(tweet.hashtags) for tweet in hashtags.tweets(600))
    assert set(shares) == {0, 1, 2, 3}
    with pytest.raises(HeadwaterError, match="is not empty"):
        hashtags.generate(tmp_path / "one", 50)


@pytest.mark.spark
def test_the_workflow(spark, tmp_path: Path) -> None:
    """Both jobs' results and dependencies; what the first puts out is what the second uses."""
    tweets, counts = tmp_path / "tweets", tmp_path / "counts"
    hashtags.generate(tweets, 120, files=4)
    tags = tags_of(tweets)

    found = hashtags.count(tweets, counts, tmp_path / "first", nodes=("n1", "n2"))
    words = [w for file in tweets.iterdir() for w in file.read_text().split() if w[0] == "#"]
    assert found == Counter(words)
    parsed = told(tmp_path / "first", hashtags.COUNT)
    first = dependencies(named(parsed))
    assert first == {f"hashtags/{tag}": names for tag, names in tags.items()}
    assert parsed.ends == [hashtags.COUNT]
    assert set(parsed.edges["function"].to_pylist()) == {"map", "combine", "reduce"}
    assert set(parsed.edges["node"].to_pylist()) == {"n1", "n2"}
    assert parsed.spans.num_rows == len(set(parsed.edges["execution"].to_pylist()))

    sums = hashtags.categorize(spark, counts, tmp_path / "second")
    expected: Counter[str] = Counter()
    for tag, number in found.items():
        expected[hashtags.category(tag)] += number
    assert sums == expected
    parsed = told(tmp_path / "second", hashtags.CATEGORIZE)
    second = dependencies(named(parsed))
    assert parsed.ends == [hashtags.CATEGORIZE]
    assert set().union(*second.values()) == set(first)
    for name, inputs in second.items():
        kind = name.removeprefix("categories/")
        assert inputs == {f"hashtags/{tag}" for tag in tags if hashtags.category(tag) == kind}


@pytest.mark.parametrize("group", [True, False])
def test_made_provenance(tmp_path: Path, group: bool) -> None:
    made = hashtags.provenance(tmp_path / "p", 6_000, 3, 4, group, end="J")
    assert [file.name for file in made.files] == [f"provenance-{n:05d}.jsonl" for n in range(3)]
    assert made.bytes == sum(file.stat().st_size for file in made.files)
    assert made.edges in range(6_000, 6_100)
    assert 200 < made.bytes / made.edges < 240
    parsed = told(tmp_path / "p", "J")
    assert parsed.edges.num_rows == made.edges
    assert parsed.ends == ["J"]
    found = dependencies(named(parsed))
    assert len(found) == made.hashtags
    assert sum(map(len, found.values())) == made.dependencies
    functions, nodes = (parsed.edges[name].to_pylist() for name in ("function", "node"))
    assert [f for f, g in pairwise([*functions, ""]) if f != g][-2:] == ["combine", "reduce"]
    assert set(nodes) == {"node-0", "node-1", "node-2", "node-3"}
    tweets = [name for _, name in named(parsed) if name.startswith("tweets-") and "out" not in name]
    assert len(set(tweets)) == made.tweets


def test_made_provenance_is_interleaved_and_in_order_of_time(tmp_path: Path) -> None:
    """The first maps go round the nodes; executions begin one after the other."""
    hashtags.provenance(tmp_path / "p", 60_000, 2, 5, tagged=0.5)
    parsed = told(tmp_path / "p", "J")
    runs = parsed.edges["execution"].to_pylist()
    begins = [at for at, run in enumerate(runs) if at == 0 or run != runs[at - 1]]
    assert len(begins) == len(set(runs))
    nodes, times = parsed.edges["node"].to_pylist(), parsed.edges["time"].to_pylist()
    assert [nodes[at] for at in begins[:10]] == [f"node-{n}" for n in (0, 1, 2, 3, 4) * 2]
    assert all(times[at] < times[after] for at, after in pairwise(begins))
    functions = parsed.edges["function"].to_pylist()
    assert functions.index("combine") < len(functions) - functions[::-1].index("map")


def test_made_provenance_is_the_same_with_groups_and_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashtag_provenance, "_MOST_IN_A_GROUP", 3)
    one = hashtags.provenance(tmp_path / "one", 3_000, 2, group=True)
    hashtags.provenance(tmp_path / "two", 3_000, 5, group=False)
    grouped, alone = told(tmp_path / "one", "J"), told(tmp_path / "two", "J")
    assert grouped.edges.equals(alone.edges)
    lines = "".join(file.read_text() for file in one.files).splitlines()
    assert {len(json.loads(line)["group"]) for line in lines} == {1, 2, 3}


def test_a_slow_node(tmp_path: Path) -> None:
    hashtags.provenance(tmp_path / "p", 3_000, 1, 3, slow=1)
    spans = told(tmp_path / "p", "J").spans
    lasting = pa.array(spans["last"].to_numpy() - spans["first"].to_numpy())
    longest: dict[str, int] = defaultdict(int)
    for node, micros in zip(spans["node"].to_pylist(), lasting.to_pylist(), strict=True):
        longest[node] = max(longest[node], micros)
    assert longest == {"node-0": 9_000, "node-1": 90_000, "node-2": 9_000}


@pytest.mark.parametrize(("edges", "tagged"), [(1, 0.4), (7, 1.0), (500, 0.0), (500, 0.01)])
def test_few_edges(tmp_path: Path, edges: int, tagged: float) -> None:
    made = hashtags.provenance(tmp_path / "p", edges, 1, tagged=tagged)
    assert told(tmp_path / "p", "J").edges.num_rows == made.edges >= edges


def test_bad_parameters(tmp_path: Path) -> None:
    with pytest.raises(HeadwaterError, match="can't write 0 edges"):
        hashtags.provenance(tmp_path, 0)
    with pytest.raises(HeadwaterError, match="nodes=0 is not a number of nodes"):
        hashtags.provenance(tmp_path, 10, 1, 0)
    (tmp_path / "x").touch()
    with pytest.raises(HeadwaterError, match="is not empty: generate provenance into a new folder"):
        hashtags.provenance(tmp_path, 10, 1)
