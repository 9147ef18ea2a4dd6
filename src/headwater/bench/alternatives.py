"""The graph on demand, from a database: what Ananke is compared with in its section 6.4.

Results and their provenance are written to tables as they come. A poller asks the database, at an
interval, for what is new: result vertices and edges; source vertices, each once; and the records
that are past because t < W - U. Relaxed, it asks every second; aggressive, as soon as it has its
answer. A run is over when the poller has delivered all of the input, so a backlog counts.

These are baselines to measure against, and no part of Headwater. MongoDB, the third of the paper's
databases, is left out: its license keeps it out of Debian.
"""

from __future__ import annotations

import io
import sqlite3
import tempfile
import threading
import time
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from headwater.bench import harness, postgres
from headwater.bench.graphs import DELIVERY, Fed, Shape, followed, variant, with_edges
from headwater.bench.harness import Case, Progress, Sample, Variant
from headwater.bench.lab import LIVE
from headwater.bench.meter import Meter
from headwater.bench.report import RATES, Table, reasons
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from headwater.bench.graphs import Made

SIZES = (10, 50, 100)
OVERLAP = 0
"""As in the paper's Table 2: no record is in two results."""

EDGES = 1_000_000
RELAXED = 1.0
"""Seconds between two questions; aggressive polling waits for none."""

FOLLOWED = "live, followed"

_TABLES = """
CREATE TABLE result (batch BIGINT, id BIGINT, t BIGINT);
CREATE TABLE provenance (batch BIGINT, result_id BIGINT, source_id BIGINT, source_t BIGINT);
CREATE TABLE progress (batch BIGINT PRIMARY KEY, watermark BIGINT);
CREATE TABLE alive (id BIGINT PRIMARY KEY, t BIGINT);
CREATE INDEX result_by_batch ON result (batch);
CREATE INDEX provenance_by_batch ON provenance (batch);
CREATE INDEX alive_by_time ON alive (t);
"""
_LATEST = "SELECT batch, watermark FROM progress ORDER BY batch DESC LIMIT 1"
_RESULTS = "SELECT id, t FROM result WHERE batch > {after} AND batch <= {until}"
_EDGES = "SELECT source_id, result_id FROM provenance WHERE batch > {after} AND batch <= {until}"
_VERTICES = (
    "INSERT INTO alive SELECT DISTINCT source_id, source_t FROM provenance "
    "WHERE batch > {after} AND batch <= {until} ON CONFLICT DO NOTHING RETURNING id, t"
)
_LABELS = "DELETE FROM alive WHERE t < {past} RETURNING id"


@dataclass(frozen=True, slots=True)
class Delivered:
    """What the answers to one round of questions had."""

    batch: int
    results: int
    edges: int
    vertices: int
    labels: int


class Database(Protocol):
    """A database with the tables; written by one thread, polled by another."""

    def write(self, made: Made, times: Any) -> None:
        """Takes a batch's results with their provenance, in one transaction."""

    def poll(self, after: int, wait: int) -> Delivered | None:
        """What is new after a batch, given U; None when nothing is."""

    def close(self) -> None:
        """Ends its connections."""


def _asked(execute: Callable[[str], Any], after: int, wait: int) -> Delivered | None:
    """The questions of a poller, in a transaction."""
    latest = execute(_LATEST).fetchone()
    if latest is None or latest[0] == after:
        return None
    until, watermark = latest
    span = {"after": after, "until": until}
    results = execute(_RESULTS.format(**span)).fetchall()
    vertices = execute(_VERTICES.format(**span)).fetchall()
    edges = execute(_EDGES.format(**span)).fetchall()
    labels = []
    if watermark is not None:
        labels = execute(_LABELS.format(past=watermark - wait)).fetchall()
    return Delivered(until, len(results), len(edges), len(vertices), len(labels))


class Sqlite:
    """SQLite: a file that keeps everything, or, without, in memory with only what is needed."""

    def __init__(self, file: Path | None) -> None:
        self._forgets = file is None
        self._connections = [
            # Transactions are begun by hand.
            sqlite3.connect(
                file or ":memory:", timeout=600, isolation_level=None, check_same_thread=False
            )
            for _ in range(1 if file is None else 2)
        ]
        # In memory there is one connection, for one at a time.
        self._one_at_a_time: Any = threading.Lock() if file is None else nullcontext()
        for connection in self._connections:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")  # as durable as our store
        self._connections[0].executescript(_TABLES)

    def write(self, made: Made, times: Any) -> None:
        """Takes a batch's results with their provenance."""
        connection, number = self._connections[0], made.number
        results = [(number, *row) for row in _rows(made.result_ids, made.result_times)]
        ids = made.result_ids.repeat(made.size)
        edges = [(number, *row) for row in _rows(ids, made.members, times)]
        with self._one_at_a_time:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO result VALUES (?, ?, ?)", results)
            connection.executemany("INSERT INTO provenance VALUES (?, ?, ?, ?)", edges)
            connection.execute("INSERT INTO progress VALUES (?, ?)", (number, made.watermark))
            connection.execute("COMMIT")

    def poll(self, after: int, wait: int) -> Delivered | None:
        """What is new after a batch."""
        connection = self._connections[-1]
        with self._one_at_a_time:
            connection.execute("BEGIN IMMEDIATE")
            found = _asked(connection.execute, after, wait)
            if self._forgets and found is not None:
                for table in ("result", "provenance"):
                    connection.execute(f"DELETE FROM {table} WHERE batch <= {found.batch}")
            connection.execute("COMMIT")
        return found

    def close(self) -> None:
        """Ends its connections."""
        for connection in self._connections:
            connection.close()


class Postgres:
    """PostgreSQL: a server that keeps everything."""

    def __init__(self, address: str) -> None:
        psycopg = postgres.driver()
        self._writer = psycopg.connect(address)
        self._poller = psycopg.connect(address)
        tables = ("result", "provenance", "progress", "alive")
        self._writer.execute(f"DROP TABLE IF EXISTS {', '.join(tables)}")
        for statement in _TABLES.split(";"):
            if statement.strip():
                self._writer.execute(statement)
        self._writer.commit()

    def write(self, made: Made, times: Any) -> None:
        """Takes a batch's results with their provenance."""
        self._copy("result", made.number, made.result_ids, made.result_times)
        ids = made.result_ids.repeat(made.size)
        self._copy("provenance", made.number, ids, made.members, times)
        self._writer.execute("INSERT INTO progress VALUES (%s, %s)", (made.number, made.watermark))
        self._writer.commit()

    def _copy(self, table: str, number: int, *columns: Any) -> None:
        """The fastest way in: columns as CSV."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.csv

        all_columns = [np.full(len(columns[0]), number), *columns]
        named = pa.table({str(n): column for n, column in enumerate(all_columns)})
        text = io.BytesIO()
        pyarrow.csv.write_csv(named, text, pyarrow.csv.WriteOptions(include_header=False))
        statement = f"COPY {table} FROM STDIN (FORMAT csv)"
        with self._writer.cursor() as cursor, cursor.copy(statement) as copy:
            copy.write(text.getvalue())

    def poll(self, after: int, wait: int) -> Delivered | None:
        """What is new after a batch."""
        found = _asked(self._poller.execute, after, wait)
        self._poller.commit()
        return found

    def close(self) -> None:
        """Ends its connections."""
        self._writer.close()
        self._poller.close()


def _rows(*columns: Any) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.tolist() for column in columns), strict=True)


class _Poller(threading.Thread):
    """Asks at an interval until a batch has been delivered."""

    def __init__(self, database: Database, interval: float, wait: int, last: int, fed: Fed):
        super().__init__(name="headwater-bench-poll")
        self._database = database
        self._interval = interval
        self._wait = wait
        self._last = last
        self._fed = fed
        self._over = threading.Event()
        self.error: Exception | None = None

    def run(self) -> None:
        """Asks again and again."""
        try:
            self._ask()
        except Exception as error:  # noqa: BLE001 - told to the thread that waits
            self.error = error

    def stop(self) -> None:
        """Lets it end without the rest."""
        self._over.set()

    def _ask(self) -> None:
        done = -1
        while done < self._last and not self._over.is_set():
            began = time.perf_counter()
            found = self._database.poll(done, self._wait)
            now = time.perf_counter()
            if found is not None:
                self._fed.delivered |= dict.fromkeys(range(done + 1, found.batch + 1), now)
                self._fed.results += found.results
                self._fed.edges += found.edges
                self._fed.vertices += found.vertices
                self._fed.labels += found.labels
                done = found.batch
            # Even aggressive, it leaves the lock to the writer for a moment.
            self._over.wait(max(0.001, self._interval - (now - began)))


def polled(
    shape: Shape, batches: Sequence[Made], make: Callable[[], Database], interval: float
) -> Variant:
    """A run of pre-made batches into a database that is polled."""

    def run(meter: Meter) -> Sample:
        fed = Fed()
        database = make()
        wait = shape.size * 1_000_000
        poller = _Poller(database, interval, wait, batches[-1].number, fed)
        try:
            with meter.measure() as reading:
                poller.start()
                try:
                    for made in batches:
                        fed.handed[made.number] = time.perf_counter()
                        database.write(made, shape.times(made.members))
                except BaseException:
                    poller.stop()
                    raise
                finally:
                    poller.join()
            if poller.error is not None:
                raise HeadwaterError(f"polling failed: {poller.error}") from poller.error
        finally:
            database.close()
        return fed.sample(reading.usage)

    return run


COLUMNS = {
    "size": ",",
    "graph": "",
    "edges/s": ",.0f",
    "edges/CPU s": ",.0f",
    **{name: form for name, form in RATES.items() if name not in ("mode", "records/s", "goal")},
    "delivery s": ".2f",
}


def tables(
    *,
    sizes: Sequence[int] = SIZES,
    edges: int = EDGES,
    pairs: int = 3,
    relaxed: float = RELAXED,
    folder: Path | None = None,
    progress: Progress = lambda doing, done, total: None,
    warm_ups: int = 1,
) -> Iterator[Table]:
    """One table: our graph and each database, relaxed and aggressive, on the same graphs."""
    table = Table(
        f"Section 6.4, the graph alone (no Spark) and on demand: the same pre-populated batches, "
        f"{edges:,} edges, medians of {pairs}",
        COLUMNS,
        notes=[
            f"/R asks every {relaxed:g} s, /A at once again; ratio: to the edges/s of live",
            "delivery s: from a batch's coming until its changes are delivered, on average",
            "live delivers with its commit, followed when store.follow() has the changes",
            "a database delivers when the poller has the rows",
        ],
    )
    with ExitStack() as stack:
        databases = _databases(stack, folder, table.notes)
        for done, size in enumerate(sizes):
            case = _case(Shape(size, OVERLAP), edges, databases, relaxed, folder)
            progress(f"size {size}", done, len(sizes))
            (outcome,) = harness.compare([case], pairs, Meter(), warm_ups=warm_ups)
            for row in with_edges(outcome):
                mode = row.pop("mode")
                delay = None
                if mode in outcome.samples:
                    delay = round(outcome.usage(mode, DELIVERY).seconds, 3)
                table.rows.append({"size": size, "graph": mode, **row, "delivery s": delay})
            table.notes.extend(reasons(outcome))
    progress("done", len(sizes), len(sizes))
    yield table


def _databases(
    stack: ExitStack, folder: Path | None, notes: list[str]
) -> dict[str, Callable[[], Database]]:
    """What can be polled here; a note says what can't, and why."""
    place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sql-", dir=folder)))

    def on_disk() -> Database:
        for file in place.glob("graph.sqlite*"):
            file.unlink()
        return Sqlite(place / "graph.sqlite")

    made: dict[str, Callable[[], Database]] = {
        "SQLite, memory": lambda: Sqlite(None),
        "SQLite, file": on_disk,
    }
    try:
        address = stack.enter_context(postgres.server(folder))
    except postgres.Unavailable as error:
        notes.append(f"PostgreSQL did not run: {error}")
    else:
        made["PostgreSQL"] = lambda: Postgres(address)
    return made


def _case(
    shape: Shape,
    edges: int,
    databases: dict[str, Callable[[], Database]],
    relaxed: float,
    folder: Path | None,
) -> Case:
    batches = shape.made(edges, per_batch=max(1, edges // 20))
    variants = {
        # Ananke's rule, so that all find the same labels.
        LIVE: variant(shape, batches, folder, "ananke"),
        FOLLOWED: followed(shape, batches, folder, "ananke"),
    }
    for name, make in databases.items():
        variants[f"{name} /R"] = polled(shape, batches, make, relaxed)
        variants[f"{name} /A"] = polled(shape, batches, make, 0.0)
    records = sum(len(made.ids) for made in batches)
    return Case({"size": shape.size}, records, variants, baseline=LIVE)
