"""Map-reduce without Spark, for what does not depend on it; and the plain oracle of results."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import headwater as hw
from headwater import streams
from headwater.mapreduce.jobs import _told
from headwater.mapreduce.mapping import FILE, ID, IDS
from headwater.mapreduce.records import Unreadable, parts
from headwater.mapreduce.results import Mapped, Reduced, result_ids
from headwater.mapreduce.running import MapReduce, start
from headwater.mapreduce.settings import Settings, given
from headwater.mapreduce.tasks import ERROR, Note, map_task, reduce_task
from headwater.mapreduce.windows import length
from headwater.store.ids import identity_hash

T0 = 1_700_000_000
"""Seconds since 1970: when the first file of a test was modified."""


def words(line: str) -> Iterable[tuple[str, int]]:
    """Each word with a 1; `boom` raises."""
    if "boom" in line.split():
        raise ValueError(f"no {line}")
    return [(word, 1) for word in line.split()]


def add(key: str, values: Sequence[int]) -> int:
    """The sum."""
    return sum(values)


class Local:
    """Maps and reduces in this process: functions only."""

    def __init__(self, settings: Settings) -> None:
        self._work, self._sink = settings.work, settings.out

    def map(self, files: Mapping[int, Path], outputs: Mapping[int, Path]) -> dict[int, Mapped]:
        found = {}
        for number, path in files.items():
            try:
                cut = parts(number, path, self._work.format, size=16)
            except Unreadable as error:
                found[number] = Mapped(reason=str(error))
                continue
            with tempfile.TemporaryDirectory() as notes:
                batches = list(map_task(cut, self._work, Path(notes))(_places(len(cut))))
                told = [Note.read(path) for path in sorted(Path(notes).iterdir())]
            found[number] = _told(told, len(cut))
            outputs[number].mkdir(exist_ok=True)
            if batches:
                table = pa.Table.from_batches(batches).drop_columns([FILE])
                pq.write_table(table, outputs[number] / "pairs.parquet")
        return found

    def reduce(self, number: int, outputs: Sequence[Path]) -> Reduced:
        work = self._work
        tables = [pq.read_table(path) for each in outputs for path in each.glob("*.parquet")]
        batches: list[pa.RecordBatch] = []
        if tables:
            table = pa.concat_tables(tables).sort_by([(k, "ascending") for k in (*work.keys, ID)])
            if work.eager and IDS not in table.column_names:
                sets = pa.array([[i] for i in table[ID].to_pylist()], pa.list_(pa.int64()))
                table = table.append_column(IDS, sets)
            names = [*work.keys, work.value.name, *([IDS] if work.eager else [])]
            batches = list(reduce_task(work, work.reduce)(iter(table.select(names).to_batches())))  # type: ignore[arg-type]
        rows = [row for batch in batches for row in batch.to_pylist()]
        good = [row for row in rows if row[ERROR] is None]
        bad = [row for row in rows if row[ERROR] is not None]
        own = pa.schema([(ID, pa.int64()), *work.output])
        listed = [{ID: self._id(number, row), **row} for row in good]
        sets = pa.chunked_array([pa.array([r.get(IDS) for r in good], pa.list_(pa.int64()))])
        letters = [{"key": [r[k] for k in work.keys], "reason": r[ERROR]} for r in bad]
        table = pa.Table.from_pylist([{n: r[n] for n in own.names} for r in listed], own)
        return Reduced(table, sets if work.eager else None, letters)

    def _id(self, number: int, row: Mapping[str, Any]) -> int:
        key = identity_hash([row[k] for k in self._work.keys], ["string"] * len(self._work.keys))
        return int(result_ids(self._sink, number, np.array([key]))[0])


def _places(count: int) -> Any:
    return iter([pa.RecordBatch.from_pydict({"id": list(range(count))})])


class Lab:
    """A directory of files, with a store and streams beside it."""

    def __init__(self, home: Path) -> None:
        self.home, self.input = home, home / "in"
        self.input.mkdir(parents=True, exist_ok=True)
        self.store, self.streams = home / "store", home / "streams"

    def put(self, name: str, text: str | bytes, second: float = 0) -> Path:
        """A file, modified so many seconds after the first."""
        path = self.input / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        os.utime(path, (T0 + second, T0 + second))
        return path

    def settings(self, **told: Any) -> Settings:
        """Settings of a word count over the latest three files, unless told otherwise."""
        return given(
            self.input,
            **{
                "map": words,
                "reduce": add,
                "window": length(3),
                "store": self.store,
                "streams": self.streams,
                "out": "counts",
                "once": True,
                **told,
            },
        )

    def run(
        self, engine: Callable[[Settings], Any] = Local, on_reduce: Any = None, **told: Any
    ) -> MapReduce:
        """Run to the end."""
        run = start(self.settings(**told), engine, on_reduce)
        run.wait(120)
        return run

    def published(self) -> dict[int, dict[str, int]]:
        """What the stream has: by reduce, the value of each key."""
        events = streams.open(self.streams).table("counts").to_pylist()
        found: dict[int, dict[str, int]] = {}
        for event in events:
            of = found.setdefault(event["reduce"], {})
            assert event["word"] not in of, "a result twice"
            of[event["word"]] = event["n"]
        return found

    def origins(self) -> dict[int, dict[str, set[tuple[str, int]]]]:
        """What the store has: by reduce and key, the files and rows of the records behind it."""
        found: dict[int, dict[str, set[tuple[str, int]]]] = {}
        with hw.open(self.store) as store:
            for row in store.join("counts").to_pylist():
                of = found.setdefault(row["reduce"], {}).setdefault(row["word"], set())
                of.add((row["file"], row["row"]))
        return found


Files = Sequence[tuple[str, Sequence[str]]]


def lines_of(text: str) -> list[str]:
    """The lines of a text: up to a line feed each."""
    found = [line.rstrip("\r") for line in text.split("\n")]
    return found[:-1] if found[-1] == "" else found


def expected(
    files: Files, windows: Sequence[Sequence[int]]
) -> tuple[dict[int, dict[str, int]], dict[int, dict[str, set[tuple[str, int]]]]]:
    """Counts of words, and the lines behind them, by window of places in `files`."""
    counts: dict[int, dict[str, int]] = {}
    origins: dict[int, dict[str, set[tuple[str, int]]]] = {}
    for number, window in enumerate(windows):
        for place in window:
            name, lines = files[place]
            for row, line in enumerate(lines):
                if "boom" in line.split():
                    continue
                for word in line.split():
                    of = counts.setdefault(number, {})
                    of[word] = of.get(word, 0) + 1
                    origins.setdefault(number, {}).setdefault(word, set()).add((name, row))
    return counts, origins


def sliding(count: int, size: int) -> list[list[int]]:
    """The windows of a length over so many files, as in Figure 74."""
    return [list(range(max(0, n - size + 1), n + 1)) for n in range(count)]
