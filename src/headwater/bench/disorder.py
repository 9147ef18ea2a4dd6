"""Figure 14: how much of a job's dependencies is found when elements come out of order.

Headwater's strategies, the published algorithm with groups and with sliding windows of several
sizes, and the dependency matrix that the paper compares with, on the provenance of the hashtag job.
No Spark: the same reducers and the same store, fed directly.

An algorithm gets the stream as it wants it: in groups, a message for all that an execution used and
one for all that it generated; or one element a message. Messages change places at random, near or
anywhere. Accuracy is the paper's measure, the share of the dependencies that is found; `backward`
and `forward` are the shares of outputs and of inputs for which all is found and nothing is wrong;
`wrong` is the share of what is found that does not hold, mostly intermediates taken for inputs.
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from headwater.bench.prov_algorithms import Algorithm1, DependencyMatrix
from headwater.bench.report import Table
from headwater.examples.hashtags import provenance
from headwater.reduce.blocks import Block, Ints, is_activity
from headwater.reduce.local import Grouping, Window, chunks
from headwater.reduce.parsing import parse
from headwater.reduce.partitioning import block_of
from headwater.store import EmbeddedWriter
from headwater.store.jobs import Counts, JobSettings, JobWriter
from headwater.testing.prov_graphs import disordered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from headwater.bench.harness import Progress
    from headwater.bench.prov_algorithms import Edge

Sent: TypeAlias = Literal["groups", "elements"]
Finds: TypeAlias = "Callable[[Stream, list[Ints]], set[Edge]]"
"""An algorithm: a stream and, in the order in which they come, the messages' places in it."""

LEVELS = (0, 10, 20, 30, 40, 50)
WINDOWS = (100, 1_000, 10_000)
DELAYS = (1_000, None)
"""How far messages are moved, in messages; None is anywhere."""
EDGES = 100_000
LOCAL_BATCH = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A job's provenance in order, and its dependencies."""

    block: Block
    true: frozenset[Edge]

    @classmethod
    def of(cls, block: Block) -> Stream:
        """The stream of a block in told order."""
        edges = list(zip(block.source.tolist(), block.destination.tolist(), strict=True))
        return cls(block, frozenset(dependencies(edges)))

    def messages(self, sent: Sent) -> list[Ints]:
        """The places of the edges of each message, in order; a group comes when it is complete."""
        if sent == "elements":
            return list(np.arange(len(self.block))[:, None])
        uses = is_activity(self.block.source)
        activity = np.where(uses, self.block.source, self.block.destination)
        members: dict[tuple[int, bool], list[int]] = defaultdict(list)
        for place, key in enumerate(zip(activity.tolist(), uses.tolist(), strict=True)):
            members[key].append(place)
        groups = sorted(members.values(), key=lambda places: places[-1])
        return [np.array(places) for places in groups]

    def edges(self, message: Ints) -> list[Edge]:
        """The edges of a message."""
        source, destination = self.block.source[message], self.block.destination[message]
        return list(zip(source.tolist(), destination.tolist(), strict=True))


def measure(
    *,
    edges: int = EDGES,
    levels: Sequence[int] = LEVELS,
    windows: Sequence[int] = WINDOWS,
    delays: Sequence[int | None] = DELAYS,
    stream: Stream | None = None,
    seed: int = 14,
    progress: Progress = lambda doing, done, total: None,
) -> Table:
    """Feeds each algorithm the same job in each disorder, and counts what it finds.

    A row has the accuracy at each level, in columns; all else is of the last level. For JSON it has
    all figures of all levels.
    """
    stream = hashtags(edges) if stream is None else stream
    last = f", {levels[-1]} %"
    columns = {"algorithm": "", "sent as": "", "moved by": ""}
    columns |= {f"{level} %": ".2f" for level in levels}
    columns |= {f"{name}{last}": ".2f" for name in ("backward", "forward", "wrong")}
    title = f"Accuracy (%) out of order, {len(stream.block):,} elements of the hashtag job"
    table = Table(title, columns)
    ways = list(_ways(windows))
    for delay in delays:
        for name, sent, finds in ways:
            progress(name, len(table.rows), len(ways) * len(delays))
            measured = [
                {"out of order": level, **_measured(stream, finds, sent, level, delay, seed)}
                for level in levels
            ]
            table.rows.append(
                {
                    "algorithm": name,
                    "sent as": sent,
                    "moved by": "any" if delay is None else f"≤ {delay:,}",
                    **{f"{one['out of order']} %": one["accuracy"] for one in measured},
                    **{f"{k}{last}": measured[-1][k] for k in ("backward", "forward", "wrong")},
                    "levels": measured,
                }
            )
    return table


def _measured(
    stream: Stream, finds: Finds, sent: Sent, level: int, delay: int | None, seed: int
) -> dict[str, Any]:
    messages = disordered(stream.messages(sent), level, Random(seed), delay)
    start = time.perf_counter()
    found = finds(stream, messages)
    seconds = time.perf_counter() - start
    return {**accuracy(found, stream.true), "seconds": round(seconds, 3)}


def hashtags(edges: int) -> Stream:
    """The provenance of a hashtag count of at least so many edges."""
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        made = provenance(Path(folder) / "told", edges, files=1, group=False)
        text = b"".join(path.read_bytes() for path in made.files)
    return Stream.of(block_of(parse(text, None), functions=False))


def dependencies(edges: Sequence[Edge]) -> set[Edge]:
    """Each output with each input that it depends on, by a search from every output."""
    below = defaultdict(list)
    for effect, cause in edges:
        below[effect].append(cause)
    used = {cause for _, cause in edges}
    found = set()
    for output in below:
        if output & 1 or output in used:
            continue
        seen = {output}
        waiting = [output]
        while waiting:
            for cause in below.get(waiting.pop(), ()):
                if cause not in seen:
                    seen.add(cause)
                    waiting.append(cause)
        found |= {(output, cause) for cause in seen if not cause & 1 and cause not in below}
    return found


def accuracy(found: set[Edge], true: frozenset[Edge]) -> dict[str, float]:
    """What is found of the true dependencies, and what of it is wrong, in percent.

    >>> accuracy({(2, 10), (4, 12)}, frozenset({(2, 10), (4, 10)}))
    {'accuracy': 50.0, 'backward': 50.0, 'forward': 0.0, 'wrong': 50.0}
    """
    outputs, inputs = {output for output, _ in true}, {cause for _, cause in true}
    between = {(a, b) for a, b in found if a in outputs and not b & 1}
    missed, wrong = true - between, between - true
    both = missed | wrong
    return {
        "accuracy": _percent(len(true) - len(missed), len(true)),
        "backward": _percent(len(outputs - {a for a, _ in both}), len(outputs)),
        "forward": _percent(len(inputs - {b for _, b in both}), len(inputs)),
        "wrong": _percent(len(wrong), len(between)),
    }


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 3) if whole else 0.0


def _ways(windows: Sequence[int]) -> Iterator[tuple[str, Sent, Finds]]:
    """Each algorithm with how it wants its messages."""
    yield "grouping, Headwater", "elements", _reduced
    yield "grouping, Algorithm 1", "groups", _algorithm1
    yield "Algorithm 1 alone", "elements", _algorithm1
    for size in windows:
        yield f"window {size:,}, Headwater", "elements", partial(_reduced, window=size)
        yield f"window {size:,}, Algorithm 1", "elements", partial(_algorithm1, window=size)
    yield "dependency matrix", "elements", _matrix


def _algorithm1(stream: Stream, messages: list[Ints], window: int = 0) -> set[Edge]:
    reducer = Algorithm1(window)
    for message in messages:
        reducer.add(stream.edges(message))
    return reducer.pairs()


def _matrix(stream: Stream, messages: list[Ints]) -> set[Edge]:
    matrix = DependencyMatrix()
    for message in messages:
        matrix.add(stream.edges(message))
    return matrix.pairs()


def _reduced(stream: Stream, messages: list[Ints], window: int | None = None) -> set[Edge]:
    """By one local reducer and the store's global one, as `headwater reduce` does it."""
    reducer = Grouping(LOCAL_BATCH) if window is None else Window(LOCAL_BATCH, window)
    told: dict[str, Any] = {"strategy": "grouping"}
    if window is not None:
        told = {"strategy": "window", "window": window}
    state: bytes | None = None
    with (
        tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder,
        EmbeddedWriter.open(Path(folder) / "store") as writer,
    ):
        job = JobWriter(writer, JobSettings("hashtags", "memory", **told), "bench")
        whole = stream.block.rows(np.concatenate(messages))
        for number, chunk in enumerate(chunks([whole], LOCAL_BATCH)):
            step = reducer.apply(state, [chunk], None, False)
            state = step.state
            job.commit(number, None, step.hot, step.residue, None, Counts(len(chunk)))
        job.finish()
        with writer.working("reading") as connection:
            rows = connection.execute(
                "SELECT output, input FROM dependencies UNION ALL "
                "SELECT output, input FROM fresh_dependencies"
            ).fetchall()
    return set(rows)
