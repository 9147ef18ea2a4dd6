"""The stages of a reduction without Spark: the same functions, one after the other.

What each stage costs, and how much the local and the global reducers leave of a job's provenance by
partitioning and local batch size (the paper's Table I and Figure 16).
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from headwater.bench.paired import QUARTILES, quartiles
from headwater.bench.report import Table
from headwater.examples.hashtags import provenance
from headwater.reduce.blocks import Block
from headwater.reduce.local import Grouping
from headwater.reduce.parsing import parse
from headwater.reduce.partitioning import PARTITIONS, buckets_of, split
from headwater.reduce.ranges import Range, texts
from headwater.store import EmbeddedWriter
from headwater.store.jobs import Counts, JobSettings, JobWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from headwater.bench.harness import Progress
    from headwater.reduce.local import Step
    from headwater.reduce.parsing import Parsed
    from headwater.reduce.partitioning import Partition

BATCHES = (1_000, 5_000, 10_000, 20_000, 50_000, 100_000)
LOCAL_BATCH, GLOBAL_BATCH = 20_000, 100_000
REDUCERS = 5
"""Local reducers where partitionings are compared: as in the paper, one for each node."""

STAGES = ("parsing", "splitting", "local reduction", "commit", "completion")
_JOB = "hashtags"

COSTS = {"stage": "", "MB/CPU s": ",.1f", "CPU s": ",.2f", QUARTILES: ",.2f", "share": ".2f"}
TABLE_I = {
    "partition": "",
    "edges": ",",
    "after local": ",",
    "after global": ",",
    "edges ratio": ",.2f",
    "MB": ",.1f",
    "MB after local": ",.1f",
    "MB after global": ",.1f",
    "MB ratio": ",.1f",
    "kept aside": ",",
}


def parsing_rate(files: Iterable[Path]) -> float:
    """MB of files parsed in a second of CPU."""
    size, seconds = 0, 0.0
    for content in _contents(files):
        begin = time.process_time()
        parse(content, _JOB)
        seconds += time.process_time() - begin
        size += len(content)
    return size / 1e6 / seconds


def stages(edges: int, pairs: int, folder: Path | None, progress: Progress) -> Table:
    """What each stage costs by itself, in seconds of CPU."""
    with tempfile.TemporaryDirectory(prefix="headwater-bench-", dir=folder) as name:
        made = provenance(Path(name) / "told", edges, files=4)
        runs: list[dict[str, float]] = []
        for turn in range(pairs + 1):
            progress("warm-up" if not turn else f"{turn} of {pairs}", turn, pairs + 1)
            runs.append(_staged(made.files, Path(name) / f"store-{turn}"))
        progress("done", pairs + 1, pairs + 1)
    seconds = {stage: statistics.median(run[stage] for run in runs[1:]) for stage in STAGES}
    total = sum(seconds.values())
    spread = {stage: quartiles([run[stage] for run in runs[1:]]) for stage in STAGES}
    spread["all"] = quartiles([sum(run.values()) for run in runs[1:]])
    title = (
        f"Stages without Spark, {made.edges:,} edges, {made.bytes / 1e6:,.0f} MB of JSON; "
        f"median of {pairs}"
    )
    table = Table(title, COSTS)
    for stage, spent in [*seconds.items(), ("all", total)]:
        rate = made.bytes / 1e6 / spent
        table.rows.append(
            {
                "stage": stage,
                "MB/CPU s": round(rate, 1),
                "CPU s": round(spent, 3),
                "share": round(spent / total, 3),
                QUARTILES: spread[stage],
            }
        )
    table.notes.append("the rate of parsing is the ceiling; Spark's own work comes on top of all")
    return table


def _staged(files: Iterable[Path], store: Path) -> dict[str, float]:
    """Seconds of CPU of each stage."""
    seconds = dict.fromkeys(STAGES, 0.0)
    strategy = Grouping(LOCAL_BATCH)

    def timed(stage: str, since: float) -> float:
        now = time.process_time()
        seconds[stage] += now - since
        return now

    with EmbeddedWriter.open(store) as writer:
        job = JobWriter(writer, JobSettings(_JOB, "memory"), "bench")
        for number, content in enumerate(_contents(files)):
            at = time.process_time()
            parsed = parse(content, _JOB)
            at = timed("parsing", at)
            by = buckets_of(parsed.edges, "vertical", 2)
            rows = [(bucket, b.to_bytes()) for bucket, b in split(parsed, by, functions=False)]
            at = timed("splitting", at)
            steps = [
                strategy.apply(
                    None, [Block.from_bytes(p) for b, p in rows if b == bucket], None, False
                )
                for bucket in (0, 1)
            ]
            at = timed("local reduction", at)
            _commit(job, number, steps, parsed, len(content))
            timed("commit", at)
        at = time.process_time()
        job.finish()
        timed("completion", at)
    return seconds


def partitionings(
    edges: int,
    *,
    batches: Sequence[int] = BATCHES,
    reducers: int = REDUCERS,
    folder: Path | None = None,
    progress: Progress = lambda doing, done, total: None,
) -> Iterator[Table]:
    """Two tables: what local and global reducers leave, and the former by local batch size."""
    total = len(PARTITIONS) * (len(batches) + 1)
    with tempfile.TemporaryDirectory(prefix="headwater-bench-", dir=folder) as name:
        progress("writing the provenance", 0, total)
        made = provenance(Path(name) / "told", edges, files=4)
        blocks = {by: _buckets(made.files, by, reducers) for by in PARTITIONS}
        size = f"{made.edges:,} edges, {reducers} local reducers, no Spark"
        first = Table(f"What reducers leave (Table I): {size}", TABLE_I)
        for done, by in enumerate(PARTITIONS):
            progress(f"{by}, both reducers", done, total)
            left = _left(blocks[by], Path(name) / by)
            first.rows.append(
                {
                    "partition": by,
                    "edges": made.edges,
                    **left,
                    "edges ratio": round(made.edges / left["after global"], 2),
                    "MB": round(made.bytes / 1e6, 1),
                    "MB ratio": round(made.bytes / 1e6 / left["MB after global"], 1),
                }
            )
        first.notes.append(
            f"local batches of {LOCAL_BATCH:,}, global ones of {GLOBAL_BATCH:,}; kept aside: edges "
            "of eliminated vertices, until the job is complete; after global: the dependencies, in "
            "MB in a database of their own, in both orders, with names"
        )
        columns = {"local batch": ","} | dict.fromkeys(PARTITIONS, ",")
        second = Table(f"Edges that local reducers hand on (Figure 16): {size}", columns)
        for done, batch in enumerate(batches):
            row: dict[str, int] = {"local batch": batch}
            for more, by in enumerate(PARTITIONS):
                at = len(PARTITIONS) * (1 + done) + more
                progress(f"{by}, local batches of {batch:,}", at, total)
                steps = _reduced(blocks[by], batch)
                row[by] = sum(len(block) for step in steps for block in step.hot)
            second.rows.append(row)
        progress("done", total, total)
    yield from (first, second)


def _buckets(files: Iterable[Path], by: Partition, number: int) -> list[list[Block]]:
    """The blocks of each local reducer, in the order told."""
    found: dict[int, list[Block]] = defaultdict(list)
    for content in _contents(files):
        parsed = parse(content, _JOB)
        for bucket, block in split(parsed, buckets_of(parsed.edges, by, number), functions=False):
            found[bucket].append(block)
    return list(found.values())


def _reduced(buckets: Iterable[Sequence[Block]], batch: int) -> list[Step]:
    strategy = Grouping(batch)
    return [strategy.apply(None, blocks, None, False) for blocks in buckets]


def _left(buckets: Sequence[Sequence[Block]], store: Path) -> dict[str, Any]:
    """What the reducers leave of a job, and the bytes of it."""
    steps = _reduced(buckets, LOCAL_BATCH)
    hot = [block for step in steps for block in step.hot]
    size = sum(len(block.to_bytes()) for block in hot)
    aside = sum(len(residue) for step in steps for residue in step.residue)
    with EmbeddedWriter.open(store) as writer:
        settings = JobSettings(_JOB, "memory", global_batch=GLOBAL_BATCH)
        job = JobWriter(writer, settings, "bench")
        for number, step in enumerate(steps):
            job.commit(number, None, step.hot, step.residue, None, Counts(0))
        finished = job.finish()
        size_after = _stored(writer, store.with_suffix(".duckdb"))
    return {
        "after local": sum(map(len, hot)),
        "after global": finished.dependencies,
        "MB after local": round(size / 1e6, 2),
        "MB after global": round(size_after / 1e6, 2),
        "kept aside": aside,
    }


def _stored(writer: EmbeddedWriter, copy: Path) -> int:
    """Bytes of the dependencies, in both orders, and of the names: in a file with nothing else."""
    with writer.working("reading") as source:
        pairs = source.sql(
            "SELECT output, input FROM dependencies UNION ALL "
            "SELECT output, input FROM fresh_dependencies"
        ).to_arrow_table()
        names = source.sql(
            "SELECT id, name FROM entities UNION ALL SELECT id, name FROM fresh_entities"
        ).to_arrow_table()
    with duckdb.connect(copy) as target:
        target.register("pairs", pairs)
        target.register("names", names)
        target.execute("CREATE TABLE by_output AS FROM pairs ORDER BY output, input")
        target.execute("CREATE TABLE by_input AS FROM pairs ORDER BY input, output")
        target.execute("CREATE TABLE entities AS FROM names ORDER BY id")
    return copy.stat().st_size


def _commit(job: JobWriter, number: int, steps: list[Step], parsed: Parsed, size: int) -> None:
    hot = [block for step in steps for block in step.hot]
    residue = [one for step in steps for one in step.residue]
    counts = Counts(parsed.edges.num_rows, size)
    job.commit(number, None, hot, residue, parsed.spans, counts)


def _contents(files: Iterable[Path]) -> Iterator[bytes]:
    """The lines of files, as much at a time as a task gets."""
    for file in files:
        for piece in Range(str(file), 0, file.stat().st_size).pieces():
            for text in texts(piece):
                yield text.content
