"""The ids of what is exported, put on disk first: so that a graph of any size can be sorted there.

A record that many results came from is one entity. Which records there are is known only when the
last edge has been seen, and sets of ids would not fit into memory for long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Ids = npt.NDArray[np.int64]

ROWS = 50_000
"""Ids that are read at a time."""
_EDGES = ("sink_no", "result_id", "source_no", "source_id", "seq")
_TABLES = """
CREATE TABLE batch (seq BIGINT);
CREATE TABLE result (sink_no SMALLINT, id BIGINT, seq BIGINT);
CREATE TABLE record (source_no SMALLINT, id BIGINT);
CREATE TABLE edge (
    sink_no SMALLINT, result_id BIGINT, source_no SMALLINT, source_id BIGINT, seq BIGINT);
"""


class Spool:
    """Ids of results, records and edges, in a database of its own."""

    def __init__(self, folder: Path) -> None:
        self._connection = duckdb.connect(
            str(folder / "spool.duckdb"), config={"memory_limit": "256MiB"}
        )
        self._connection.execute(_TABLES)

    def add_batches(self, seqs: Ids) -> None:
        """Batches that are meant, whether or not they have a result."""
        self._insert("batch", pa.table({"seq": seqs}))

    def add_results(self, sink_no: int, ids: Ids, seqs: Ids) -> None:
        """Results of a sink, with the batches that delivered them."""
        number = np.full(len(ids), sink_no, np.int16)
        self._insert("result", pa.table({"sink_no": number, "id": ids, "seq": seqs}))

    def add_records(self, source_no: int, ids: Ids) -> None:
        """Records that may have no edge."""
        number = np.full(len(ids), source_no, np.int16)
        self._insert("record", pa.table({"source_no": number, "id": ids}))

    def add_edges(self, edges: pa.Table, **same: int) -> None:
        """Edges by their columns; `same` are those that all have in common."""
        for name, value in same.items():
            number = pa.array(np.full(edges.num_rows, value, np.int16))
            edges = edges.append_column(name, number)
        self._insert("edge", edges.select(_EDGES))

    def sinks(self) -> list[int]:
        """The numbers of the sinks that have results here."""
        return self._column("SELECT DISTINCT sink_no FROM result ORDER BY 1")

    def sources(self) -> list[int]:
        """The numbers of the sources that have records here."""
        return self._column(
            "SELECT DISTINCT source_no FROM "
            "(SELECT source_no FROM edge UNION ALL SELECT source_no FROM record) ORDER BY 1"
        )

    def seqs(self) -> list[int]:
        """The batches that are meant or have a result here, in order."""
        return self._column("SELECT seq FROM batch UNION SELECT seq FROM result ORDER BY 1")

    def results(self, sink_no: int) -> Iterator[pa.RecordBatch]:
        """The results of a sink as they were delivered: `id`, `seq`."""
        return self._rows(
            f"SELECT DISTINCT id, seq FROM result WHERE sink_no = {sink_no} ORDER BY seq, id"
        )

    def records(self, source_no: int) -> Iterator[pa.RecordBatch]:
        """The records of a source, each once: `id`."""
        return self._rows(
            f"SELECT DISTINCT source_id AS id FROM edge WHERE source_no = {source_no} UNION "
            f"SELECT id FROM record WHERE source_no = {source_no} ORDER BY 1"
        )

    def edges(self) -> Iterator[pa.RecordBatch]:
        """The edges in the order in which they came."""
        return self._rows(f"SELECT {', '.join(_EDGES)} FROM edge")

    def counts(self) -> Iterator[pa.RecordBatch]:
        """By batch: `seq`, and how many `results`, `edges` and different `records` it has here."""
        return self._rows(
            "WITH b AS (SELECT seq FROM batch UNION SELECT seq FROM result), "
            "r AS (SELECT seq, count(DISTINCT (sink_no, id)) AS n FROM result GROUP BY seq), "
            "e AS (SELECT seq, count(*) AS n, count(DISTINCT (source_no, source_id)) AS records "
            "FROM edge GROUP BY seq) SELECT b.seq, coalesce(r.n, 0) AS results, "
            "coalesce(e.n, 0) AS edges, coalesce(e.records, 0) AS records "
            "FROM b LEFT JOIN r USING (seq) LEFT JOIN e USING (seq) ORDER BY b.seq"
        )

    def totals(self) -> tuple[int, int]:
        """How many different results and records there are, and how many edges."""
        (row,) = self._connection.execute(
            "SELECT (SELECT count(*) FROM (SELECT DISTINCT sink_no, id FROM result)) + "
            "(SELECT count(*) FROM (SELECT source_no, source_id FROM edge UNION "
            "SELECT source_no, id FROM record)), (SELECT count(*) FROM edge)"
        ).fetchall()
        return row[0], row[1]

    def close(self) -> None:
        """Let go of the database."""
        self._connection.close()

    def _insert(self, table: str, rows: pa.Table) -> None:
        self._connection.register("hw_rows", rows)
        self._connection.execute(f"INSERT INTO {table} SELECT * FROM hw_rows")
        self._connection.unregister("hw_rows")

    def _column(self, sql: str) -> list[int]:
        return [row[0] for row in self._connection.execute(sql).fetchall()]

    def _rows(self, sql: str) -> Iterator[pa.RecordBatch]:
        with self._connection.cursor() as cursor:
            for batch in cursor.sql(sql).to_arrow_reader(ROWS):
                if batch.num_rows:
                    yield batch
