"""Shards of a live graph on a lake, without Spark: what the whole graph has, in parts."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from headwater.errors import RunError
from headwater.flow.reach import OWN_BATCH, Reach
from headwater.flow.reach_rules import Rule
from headwater.live.graph import LAST, LiveGraph, Moment
from headwater.live.parallel import records, rows, sessions
from headwater.live.parallel.records import Records
from headwater.live.parallel.sessions import Sessions
from headwater.live.parallel.state import Folder, State
from headwater.store.batch import GraphChanges
from headwater.store.lake.place import Place
from headwater.store.lake.tables import Added
from headwater.store.lake.tasks import told
from tests.live.test_reach import S, window

Ints = npt.NDArray[np.int64]
SHARDS = 3
WINDOWED = Reach(
    "a", (Rule("a", "start"), window("w", "a", 10, 5), Rule("out", "pass", ("w",))), ("out",)
)
IN_SESSIONS = Reach(
    "b",
    (Rule("b", "start"), Rule("s", "session", ("b",), size=4 * S), Rule("out", "pass", ("s",))),
    ("out",),
)
ENDLESS = Reach("c", (Rule("c", "start"), Rule("e", "endless", ("c",), why="it waits")), ("e",))
REACHES = {"a": WINDOWED, "b": IN_SESSIONS, "c": ENDLESS}
NUMBERS = {name: no for no, name in enumerate(REACHES)}


@dataclass
class Batch:
    """What a batch brings: times and reached ids by source, the rows of sessions, a watermark."""

    watermark: int
    times: Mapping[str, tuple[Ints, Ints]]
    reached: Mapping[str, Ints]
    entered: tuple[Ints, Ints, Ints]
    """Keys, times and ids."""


def batches(seed: int, many: int) -> Iterator[Batch]:
    """Batches of records some of which have results, now or later."""
    chance = random.Random(seed)
    ids = dict.fromkeys(REACHES, 0)
    recent: dict[str, list[int]] = {name: [] for name in REACHES}
    for number in range(many):
        times, reached = {}, {}
        for name in REACHES:
            new = [ids[name] + place for place in range(chance.randint(0, 12))]
            ids[name] += len(new)
            at = [max(0, number * 3 + chance.randint(-4, 3)) * S for _ in new]
            times[name] = np.array(new, np.int64), np.array(at, np.int64)
            # Only what is not past can have a result: of the windows, those of two batches.
            recent[name] = [*recent[name][-14:], *new]
            some = chance.sample(recent[name], min(len(recent[name]), chance.randint(0, 6)))
            reached[name] = np.array(sorted(some), np.int64)
        new_ids, at_times = times["b"]
        keys = np.array([one % 4 for one in new_ids.tolist()], np.int64)
        del times["c"]
        yield Batch(max(0, number * 3 - 60) * S, times, reached, (keys, at_times, new_ids))


@dataclass
class Shards:
    """The shards of a graph, driven as Spark would."""

    place: Place
    state: State = field(default_factory=lambda: State(SHARDS))
    watermark: int = OWN_BATCH
    seq: int = 0
    rewrites: int = 0

    @property
    def folder(self) -> str:
        """The graph's folder in the lake."""
        return Folder(self.place, "f").name

    def take(self, given: Batch, *, last: bool = False) -> tuple[dict[str, set[int]], ...]:
        """Advance all shards; vertices and labels by source."""
        self.seq += 1
        at = Moment(max(self.watermark, given.watermark), self.watermark)
        self.watermark = at.watermark
        by_key = Sessions(
            self.place, self.folder, self.seq, at, (("s", {1: IN_SESSIONS}),), self.state.sessions
        )
        by_record = Records(
            self.place,
            self.folder,
            self.seq,
            Moment(LAST if last else at.watermark, at.previous),
            "tight",
            {NUMBERS[name]: (name, reach) for name, reach in REACHES.items()},
            self.state.records,
        )
        rest = self._held(by_key, given)
        lines: list[Added] = []
        for shard in range(SHARDS):
            found = by_record([self._input(shard, given, rest)])
            lines += told(pa.Table.from_batches(found))
        self._note(lines)
        return self._read(lines, "vertices"), self._read(lines, "labels")

    def _held(self, by_key: Sessions, given: Batch) -> pa.Table:
        key, time, ids = given.entered
        found = []
        for shard in range(SHARDS):
            own = key % SHARDS == shard
            many = int(own.sum())
            table = pa.table(
                {
                    "shard": pa.array([shard] * (many + 1), pa.int32()),
                    "step": pa.array([None, *[0] * many], pa.int16()),
                    "source_no": pa.array([None, *[1] * many], pa.int16()),
                    "key": pa.array([None, *key[own].tolist()], pa.int64()),
                    "time": pa.array([None, *time[own].tolist()], pa.int64()),
                    "id": pa.array([None, *ids[own].tolist()], pa.int64()),
                }
            )
            found += list(by_key(table.to_batches()))
        return pa.Table.from_batches(found) if found else None

    def _input(self, shard: int, given: Batch, rest: pa.Table | None) -> pa.RecordBatch:
        lines = [(shard, -1, rows.ASKED, 0, 0, None)]
        for name, ids in given.reached.items():
            lines += [(shard, NUMBERS[name], rows.REACHED, one, 0, None) for one in ids.tolist()]
        for name, (ids, times) in given.times.items():
            pairs = zip(ids.tolist(), times.tolist(), strict=True)
            lines += [(shard, NUMBERS[name], rows.CAME, one, at, None) for one, at in pairs]
        if rest is not None:
            lines += [(shard, *row.values()) for row in rest.to_pylist()]
        own = [one for one in lines if one[2] == rows.ASKED or one[3] % SHARDS == shard]
        kinds = [pa.int32(), pa.int16(), pa.int8(), pa.int64(), pa.int64(), pa.string()]
        names = ("shard", "source_no", "kind", "id", "value", "told")
        return pa.RecordBatch.from_pylist(
            [dict(zip(names, one, strict=True)) for one in own],
            pa.schema(list(zip(names, kinds, strict=True))),
        )

    def _note(self, lines: list[Added]) -> None:
        """As the driver does."""
        kept, held = dict(self.state.records), {}
        for line in lines:
            shard = str(line.stats.get("shard"))
            if line.relation.endswith(f"/{records.FOLDER}"):
                self.rewrites += bool(line.stats["anew"])
                runs = () if line.stats["anew"] else kept.get(shard, ())
                kept[shard] = (*runs, *([f"{records.FOLDER}/{line.path}"] if line.path else []))
            elif line.relation.endswith(f"/{sessions.FOLDER}"):
                held[shard] = (f"{sessions.FOLDER}/{line.path}",)
        self.state = State(SHARDS, kept, held)

    def _read(self, lines: list[Added], relation: str) -> dict[str, set[int]]:
        found: dict[str, set[int]] = {name: set() for name in REACHES}
        for line in lines:
            if line.relation == relation:
                table = pa.parquet.read_table(self.place.path / relation / line.path)
                for row in table.to_pylist():
                    found[list(REACHES)[row["source_no"]]].add(row["id"])
        return found


def whole(graph: LiveGraph, number: int, given: Batch, *, last: bool) -> GraphChanges:
    """What the graph of one process adds."""
    keys, times, ids = given.entered
    sets = pa.chunked_array([pa.array([[one] for one in ids.tolist()], pa.list_(pa.int64()))])
    graph.begin(number, given.watermark, given.times, {"s": (keys, times, {"b": sets})})
    changes = graph.changes(given.reached, lambda _, asked: asked[:0], last=last)
    graph.accept()
    return changes


@pytest.mark.parametrize("seed", range(3))
def test_the_shards_together_have_the_whole_graph(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "RUNS", 4)
    monkeypatch.setattr(records, "SPARE", 10)
    shards = Shards(Place.of(f"delta:{tmp_path / 'lake'}"))
    graph = LiveGraph(REACHES, "tight", tmp_path / "whole")
    graph.restore(None, None, {})
    many, seen = 60, 0
    for number, given in enumerate(batches(seed, many)):
        last = number == many - 1
        expected = whole(graph, number, given, last=last)
        vertices, labels = shards.take(given, last=last)
        for name in REACHES:
            new = expected.vertices.get(name)
            assert vertices[name] == (set() if new is None else {*new.ids.tolist()}), number
            assert labels[name] == {*expected.labels.get(name, np.empty(0)).tolist()}, number
            seen += len(labels[name])
    assert seen > 100
    assert shards.rewrites > 10, "the state is written anew now and then"
    assert max(len(runs) for runs in shards.state.records.values()) <= 5


def test_a_record_without_a_time_is_told(tmp_path: Path) -> None:
    shards = Shards(Place.of(f"delta:{tmp_path / 'lake'}"))
    empty = np.empty(0, np.int64)
    given = Batch(0, {}, {"a": np.array([7])}, (empty, empty, empty))
    with pytest.raises(RunError, match="record 7 has a result but its time never came"):
        shards.take(given)


def test_what_batches_left_that_never_were_goes(tmp_path: Path) -> None:
    place = Place.of(f"delta:{tmp_path}")
    folder = Folder(place, "f")
    there = State(2, {"0": ("records/1-0-a.parquet",)}, waiting=3)
    folder.write(1, there)
    runs = tmp_path / folder.name / "records"
    runs.mkdir()
    (runs / "1-0-a.parquet").touch()
    (runs / "2-0-b.parquet").touch()
    folder.write(2, State(2))
    assert folder.read(1, 9) == there
    assert sorted(path.name for path in runs.iterdir()) == ["1-0-a.parquet"]
    with pytest.raises(RunError, match="state after batch 2 of the lake is missing"):
        folder.read(2, 9)
