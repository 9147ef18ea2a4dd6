"""Pre-populated graphs: results with their sets, made beforehand and fed to the store, no Spark.

As in Ananke's synthetic experiments (Figure 16, Table 2), where "sources feed Ananke with
pre-populated provenance graphs": what is measured is the graph, not the query above it. The stream
is that of `headwater.examples.synthetic`: each key has a record a second, a result comes from
`size` records and shares `overlap` percent of them with the next.
"""

from __future__ import annotations

import itertools
import tempfile
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.bench import harness
from headwater.bench.harness import GENERATION, Case, Progress, Sample, Variant
from headwater.bench.lab import LIVE
from headwater.bench.meter import Meter, Usage
from headwater.bench.report import RATES, Table, rates, reasons
from headwater.examples import stream, synthetic
from headwater.examples.stream import SECOND, START
from headwater.flow.reach import Reach
from headwater.flow.reach_rules import Rule
from headwater.live.graph import LiveGraph
from headwater.store import (
    Batch,
    EmbeddedWriter,
    FlowRegistration,
    ResultSet,
    SinkRegistration,
    SourceRegistration,
)
from headwater.store.batch import ID, TIME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from headwater.bench.harness import Outcome
    from headwater.examples.stream import Ints
    from headwater.live.graph import Expiry

SIZES = (10, 50, 100)
OVERLAPS = (0, 25, 50, 75)
EDGES = 4_000_000
PER_BATCH = 250_000
KEYS = 1_000
GOAL = 500_000
"""Edges a second that the live graph is to sustain."""

SOURCE, SINK, FLOW, QUERY = "records", "windows", "graph", "graph"
EDGE_RATES = {"mode": "", "edges/s": ",.0f", "edges/CPU s": ",.0f", **RATES}
DELIVERY = "delivery"
"""The part of a run that is the time from a batch's coming until its changes are delivered."""

_EPOCH = datetime.fromtimestamp(0, UTC)
_MILLISECOND = 1_000


@dataclass(frozen=True, slots=True)
class Made:
    """A batch: the records that it read, and the results that its watermark lets out."""

    number: int
    watermark: int | None
    """In microseconds."""
    ids: Ints
    times: Ints
    result_ids: Ints
    result_times: Ints
    members: Ints
    """The records of each result, one result after the other."""
    size: int

    @property
    def edges(self) -> int:
        """Pairs of result and record."""
        return len(self.members)

    @property
    def moment(self) -> datetime | None:
        """The watermark."""
        return None if self.watermark is None else _EPOCH + timedelta(microseconds=self.watermark)

    def results(self) -> ResultSet:
        """The results as the capture sink would hand them to the store."""
        offsets = np.arange(0, len(self.members) + 1, self.size, dtype=np.int32)
        sets = pa.ListArray.from_arrays(pa.array(offsets), pa.array(self.members))
        times = pa.array(self.result_times).cast(pa.timestamp("us", "UTC"))
        n = pa.array(np.full(len(self.result_ids), self.size, np.int64))
        rows = pa.table({ID: self.result_ids, TIME: times, "n": n})
        return ResultSet(rows, {SOURCE: pa.chunked_array([sets])}, unique=True)


@dataclass(frozen=True, slots=True)
class Shape:
    """How large the results' sets are, and how much of one is in the next."""

    size: int
    overlap: int
    keys: int = KEYS

    @property
    def slide(self) -> int:
        """Seconds from window to window."""
        return synthetic.slide(self.size, self.overlap)

    @property
    def reach(self) -> Reach:
        """How far a record reaches; U is the window's size."""
        size, slide = self.size * SECOND, self.slide * SECOND
        offset = START * SECOND % slide
        rules = (
            Rule(SOURCE, "start"),
            Rule(SINK, "window", (SOURCE,), size=size, slide=slide, offset=offset),
        )
        return Reach(SOURCE, rules, (SINK,), size)

    def times(self, ids: Ints) -> Ints:
        """The records' times in microseconds."""
        second, key = np.divmod(ids, self.keys)
        micros: Ints = (START + second) * SECOND + key * SECOND // self.keys
        return micros

    def batches(self, per_batch: int = PER_BATCH) -> Iterator[Made]:
        """Batch after batch, each with about so many edges; there is no last one."""
        step = max(1, round(per_batch * self.slide / (self.size * self.keys)))
        given = 0
        watermark = None
        for number in itertools.count():
            ids = np.arange(number * step * self.keys, (number + 1) * step * self.keys)
            times = self.times(ids)
            until = given
            if watermark is not None:
                whole = watermark // SECOND - START - self.size
                until = max(given, whole // self.slide + 1)
            yield self._made(number, watermark, ids, times, np.arange(given, until))
            given = until
            # As Spark's: the latest time that earlier batches saw, in milliseconds.
            watermark = int(times[-1]) // _MILLISECOND * _MILLISECOND

    def _made(
        self, number: int, watermark: int | None, ids: Ints, times: Ints, windows: Ints
    ) -> Made:
        begin = np.repeat(windows * self.slide, self.keys)
        key = np.tile(np.arange(self.keys), len(windows))
        members = (begin[:, None] + np.arange(self.size)) * self.keys + key[:, None]
        return Made(
            number,
            watermark,
            ids,
            times,
            # A result's id is a hash: in no order.
            stream.noise(np.repeat(windows, self.keys) * self.keys + key, 7),
            (START + begin + self.size) * SECOND - 1,
            members.ravel(),
            self.size,
        )

    def made(self, edges: int, per_batch: int = PER_BATCH) -> list[Made]:
        """As many batches as it takes for so many edges."""
        batches = []
        total = 0
        for batch in self.batches(per_batch):
            batches.append(batch)
            total += batch.edges
            if total >= edges:
                return batches
        raise AssertionError("batches never end")

    def registration(self, expiry: Expiry | None) -> FlowRegistration:
        """The flow as a store knows it; without `expiry` it has no live graph."""
        key = {"kind": "column", "columns": ["id"], "types": ["bigint"]}
        source = SourceRegistration(
            SOURCE, {"kind": "stream", "keep": "none", "id": key}, pa.schema([("id", pa.int64())])
        )
        sink = SinkRegistration(SINK, {"sources": [SOURCE]}, pa.schema([("n", pa.int64())]))
        live = expiry and {"expiry": expiry, "reach": {SOURCE: self.reach.to_json()}}
        return FlowRegistration(FLOW, "eager", QUERY, "", "", {"live": live}, (source,), (sink,))


@dataclass(slots=True)
class Fed:
    """What the batches so far brought to a store."""

    results: int = 0
    edges: int = 0
    vertices: int = 0
    labels: int = 0
    handed: dict[int, float] = field(default_factory=dict)
    """By batch: when it came, on the clock."""
    delivered: dict[int, float] = field(default_factory=dict)
    """By batch: when its changes had been delivered."""

    @property
    def delay(self) -> float:
        """Seconds from a batch's coming until its changes are delivered, on average."""
        return float(np.mean([at - self.handed[n] for n, at in self.delivered.items()]))

    def sample(self, usage: Usage) -> Sample:
        """The run as a sample; its answers are what every way of keeping the graph must find."""
        parts = {GENERATION: usage}
        if self.delivered:
            parts[DELIVERY] = Usage(self.delay, 0.0, 0)
        counts = {"edges": self.edges}
        if self.vertices:
            counts |= {"source vertices": self.vertices, "source labels": self.labels}
        return Sample(parts, self.results, self.edges, len(self.handed), counts)


class Feeder:
    """A store, with a live graph or with edges alone, that is fed batch after batch."""

    def __init__(self, shape: Shape, store: Path, expiry: Expiry | None) -> None:
        self.writer = EmbeddedWriter.open(store)
        self.fed = Fed()
        self.graph: LiveGraph | None = None
        self.writer.register(shape.registration(expiry))
        if expiry is not None:
            self.graph = LiveGraph({SOURCE: shape.reach}, expiry, store / "live")

    def take(self, made: Made) -> None:
        """Does with a batch what the capture sink does with one of Spark's."""
        self.fed.handed[made.number] = time.perf_counter()
        if self.graph is not None:
            self.graph.begin(made.number, made.watermark, {SOURCE: (made.ids, made.times)}, {})
        results = {SINK: made.results()}
        done = self.writer.commit(Batch(QUERY, made.number, made.moment, results, graph=self.graph))
        if self.graph is not None:
            self.graph.accept()
        self.fed.delivered[made.number] = time.perf_counter()
        self.fed.results += done.results
        self.fed.edges += done.edges
        self.fed.vertices += done.vertices
        self.fed.labels += done.labels

    def __enter__(self) -> Feeder:
        return self

    def __exit__(self, *_: object) -> None:
        self.writer.close()


def variant(
    shape: Shape, batches: Sequence[Made], folder: Path | None, expiry: Expiry | None
) -> Variant:
    """A run of pre-made batches into a new store; without `expiry`, with edges alone."""

    def run(meter: Meter) -> Sample:
        with (
            tempfile.TemporaryDirectory(prefix="graph-", dir=folder) as name,
            Feeder(shape, Path(name) / "store", expiry) as feeder,
        ):
            with meter.measure() as reading:
                for made in batches:
                    feeder.take(made)
            return feeder.fed.sample(reading.usage)

    return run


def followed(shape: Shape, batches: Sequence[Made], folder: Path | None, expiry: Expiry) -> Variant:
    """The same with somebody who follows the graph: a batch counts once its changes are read."""
    import headwater as hw

    def run(meter: Meter) -> Sample:
        with tempfile.TemporaryDirectory(prefix="graph-", dir=folder) as name:
            store = Path(name) / "store"
            with Feeder(shape, store, expiry) as feeder, hw.open(store) as opened:
                read: dict[int, float] = {}

                def follow() -> None:
                    for change in opened.follow(timeout=60):
                        read[change.batch] = time.perf_counter()
                        if change.batch == batches[-1].number:
                            return

                reader = threading.Thread(target=follow, name="headwater-bench-follow")
                with meter.measure() as reading:
                    reader.start()
                    for made in batches:
                        feeder.take(made)
                    reader.join()
                feeder.fed.delivered = read
                return feeder.fed.sample(reading.usage)

    return run


def tables(
    *,
    sizes: Sequence[int] = SIZES,
    overlaps: Sequence[int] = OVERLAPS,
    edges: int = EDGES,
    pairs: int = 5,
    folder: Path | None = None,
    progress: Progress = lambda doing, done, total: None,
    warm_ups: int = 1,
) -> Iterator[Table]:
    """One table: Figure 16's grid for the graph alone, against a store of edges alone."""
    table = Table(
        f"Figure 16, the graph alone (no Spark): pre-populated batches into the store, {edges:,} "
        f"edges, medians of {pairs}",
        {"size": ",", "overlap %": ",", **EDGE_RATES},
        notes=["eager: the same results and edges committed without a graph, to compare with"],
    )
    cases = (
        _case(Shape(size, overlap), edges, folder)
        for size, overlap in itertools.product(sizes, overlaps)
    )
    total = len(sizes) * len(overlaps)
    for done, case in enumerate(cases):
        progress(str(case), done, total)
        (outcome,) = harness.compare([case], pairs, Meter(), warm_ups=warm_ups)
        table.rows.extend(with_edges(outcome, LIVE))
        table.notes.extend(reasons(outcome))
    progress("done", total, total)
    table.notes.append(verdict(table.rows))
    yield table


def _case(shape: Shape, edges: int, folder: Path | None) -> Case:
    batches = shape.made(edges)
    variants = {
        "eager": variant(shape, batches, folder, None),
        LIVE: variant(shape, batches, folder, "tight"),
    }
    labels = {"size": shape.size, "overlap %": shape.overlap}
    return Case(labels, sum(len(made.ids) for made in batches), variants, baseline="eager")


def with_edges(outcome: Outcome, *goals: str) -> Iterator[dict[str, Any]]:
    """The rows of a case with their edges a second, and whether some reach the goal."""
    for row in rates(outcome):
        if "edges" not in row:
            yield dict(row)
            continue
        rate = round(row["edges"] / row["seconds"])
        known = {"goal": reaches(rate)} if row["mode"] in goals else {}
        by_cpu = round(row["edges"] / row["CPU s"]) if row["CPU s"] else None
        yield {**row, "edges/s": rate, "edges/CPU s": by_cpu, **known}


def reaches(rate: float) -> str:
    """Whether a rate reaches the goal.

    >>> reaches(600_000), reaches(400_000)
    ('met: ≥ 500,000', 'missed: < 500,000')
    """
    return f"met: ≥ {GOAL:,}" if rate >= GOAL else f"missed: < {GOAL:,}"


def verdict(rows: Iterable[Mapping[str, Any]]) -> str:
    """How many of the rows of a live graph reach the goal."""
    goals = [row["goal"] for row in rows if row["mode"] == LIVE and row.get("goal")]
    met = sum(goal.startswith("met") for goal in goals)
    return f"{met} of {len(goals)} live runs reach the goal of {GOAL:,} edges/s"
