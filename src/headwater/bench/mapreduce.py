"""What keeping map outputs in the window saves: a word count, against mapping each window anew.

Both variants are the same map-reduce over the same files, up to results in the store and the
stream. One maps a file once and keeps its output; the other maps all files of the window for each
reduce, as a batch job per window does.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.bench.harness import GENERATION, Case, Sample, compare
from headwater.bench.meter import Meter
from headwater.bench.report import Table
from headwater.errors import HeadwaterError
from headwater.mapreduce.jobs import Jobs
from headwater.mapreduce.results import Mapped, Reduced
from headwater.mapreduce.running import start
from headwater.mapreduce.settings import given
from headwater.mapreduce.windows import length

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from headwater.bench.harness import Outcome, Progress
    from headwater.mapreduce.settings import Settings
    from headwater.mapreduce.working import ReduceInfo

MIB = 1 << 20
SIZE = 32
"""MiB of a file, as in Figure 77; Figure 78 has 256."""
FILES = 10
WINDOW = 3
GOAL = 2.0
"""How many times sooner all results are there, at a window of three files."""

VOCABULARY = 50_000
RECOMPUTE, REUSE = "recompute", "reuse"

COLUMNS = {
    "window": ",",
    "reduce": ",",
    "files": ",",
    "recompute s": ",.2f",
    "reuse s": ",.2f",
    "ratio": ".2f",
    "95 %": ".2f",
    "goal": "",
}


def measure(
    *,
    size: float = SIZE,
    files: int = FILES,
    windows: Sequence[int] = (WINDOW,),
    pairs: int = 3,
    warm_ups: int = 2,
    folder: Path | None = None,
    progress: Progress = lambda doing, done, total: None,
) -> Table:
    """Compares both ways at each length of window; cumulative seconds after each reduce.

    A JVM takes two runs or so to compile what each way does; it is not what is measured.
    """
    from headwater.session import adopt_or_start

    spark = adopt_or_start()
    title = f"Word count of {files} files of {size:g} MiB; cumulative seconds, medians of {pairs}"
    table = Table(title, COLUMNS)
    with tempfile.TemporaryDirectory(prefix="headwater-bench-", dir=folder) as name:
        home = Path(name)
        progress("writing files", 0, 0)
        lines = generate(home / "in", files, round(size * MIB))
        times: dict[tuple[int, str], list[list[float]]] = {}
        cases = [
            Case(
                {"window": window},
                lines,
                {
                    RECOMPUTE: _variant(home, window, Recomputing, spark, times),
                    REUSE: _variant(home, window, Jobs, spark, times),
                },
                baseline=RECOMPUTE,
            )
            for window in windows
        ]
        for outcome in compare(cases, pairs, Meter(spark), progress, warm_ups):
            _add(table, outcome, times, pairs)
    return table


def generate(folder: Path, files: int, size: int, seed: int = 77) -> int:
    """Text files of about a size, with words as frequent as in a language; how many lines."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    lengths = 2 + random.poisson(4, VOCABULARY)
    words = np.array(["".join(random.choice(letters, n)) for n in lengths])
    ranks = 1 / np.arange(1, VOCABULARY + 1)
    chances = np.cumsum(ranks / ranks.sum())
    lines = 0
    for number in range(files):
        with (folder / f"{number:03d}.txt").open("w", encoding="utf-8") as out:
            while out.tell() < size:
                many = max(1_000, min(200_000, (size - out.tell()) // 6))
                drawn = words[np.searchsorted(chances[:-1], random.random(many))]
                text = "".join(f"{' '.join(drawn[at : at + 12])}\n" for at in range(0, many, 12))
                out.write(text)
                lines += text.count("\n")
    return lines


class Recomputing(Jobs):
    """Keeps no map output: every reduce maps all files of its window."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._files: dict[Path, Path] = {}

    def map(self, files: Mapping[int, Path], outputs: Mapping[int, Path]) -> dict[int, Mapped]:
        """Only remembers which files there are."""
        for number, path in files.items():
            self._files[outputs[number]] = path
            outputs[number].mkdir(exist_ok=True)
        return {number: Mapped() for number in files}

    def reduce(self, number: int, outputs: Sequence[Path]) -> Reduced:
        """Maps and reduces in one job."""
        cut = [
            part
            for place, output in enumerate(outputs)
            for part in self.cut(place, self._files[output])
        ]
        # In one job there is no need to combine by file: Spark combines before it shuffles.
        pairs = self.pairs(cut, None)
        aggregated = pairs.groupBy(*self._work.keys)
        value = self._work.value.name
        found = aggregated.agg({value: "sum"}).withColumnRenamed(f"sum({value})", value)
        return self._taken(self._reduced(found).toArrow(), number)


def _variant(
    home: Path,
    window: int,
    engine: Callable[..., Any],
    spark: Any,
    times: dict[tuple[int, str], list[list[float]]],
) -> Callable[[Meter], Sample]:
    """One run of a variant, from no state to the last result."""
    name = RECOMPUTE if engine is Recomputing else REUSE

    def run(meter: Meter) -> Sample:
        place = home / "run"
        shutil.rmtree(place, ignore_errors=True)
        settings: Settings = given(
            home / "in",
            map="words",
            reduce="sum",
            window=length(window),
            store=place / "store",
            streams=place / "streams",
            out="counts",
            capture="ancestors",
            settle=0,
            once=True,
        )
        ends: list[float] = []
        results: list[int] = []

        def on_reduce(info: ReduceInfo) -> None:
            ends.append(time.perf_counter())
            results.append(info.results)

        with meter.measure() as reading:
            begin = time.perf_counter()
            start(
                settings, lambda made: engine(spark, made.work, made.out), on_reduce, together=1
            ).wait()
        times.setdefault((window, name), []).append([end - begin for end in ends])
        return Sample({GENERATION: reading.usage}, sum(results), batches=len(results))

    return run


def _add(
    table: Table,
    outcome: Outcome,
    times: Mapping[tuple[int, str], list[list[float]]],
    pairs: int,
) -> None:
    window = int(outcome.case.labels["window"])
    medians = {}
    for name in (RECOMPUTE, REUSE):
        runs = times[window, name][-pairs:]  # without the warm-up
        if len({len(run) for run in runs}) != 1:
            raise HeadwaterError("runs differ in their number of reduces; the measurement is void")
        medians[name] = [statistics.median(ends) for ends in zip(*runs, strict=True)]
    for number, (slow, fast) in enumerate(zip(*medians.values(), strict=True)):
        row: dict[str, Any] = {
            "window": window,
            "reduce": number,
            "files": min(number + 1, window),
            "recompute s": round(slow, 3),
            "reuse s": round(fast, 3),
            "ratio": round(slow / fast, 3),
        }
        if number == len(medians[REUSE]) - 1:
            ratio = outcome.paired(REUSE)
            known = outcome.interval(REUSE)
            row["95 %"] = None if known is None else [round(known.low, 3), round(known.high, 3)]
            if window == WINDOW:
                row["goal"] = f"met: ≥ {GOAL:g}" if ratio >= GOAL else f"missed: < {GOAL:g}"
            slow_cpu, fast_cpu = (outcome.usage(name).cpu for name in (RECOMPUTE, REUSE))
            table.notes.append(
                f"window {window}: all results {ratio:.2f} times sooner with outputs kept (median "
                f"of {pairs} pairs), for {slow_cpu / max(fast_cpu, 0.01):.2f} times less CPU "
                f"({slow_cpu:,.1f} s and {fast_cpu:,.1f} s)"
            )
        table.rows.append(row)
