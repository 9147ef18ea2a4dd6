"""One batch into the tables of a store in one file, inside the writer's transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.store import ingest
from headwater.store.batch import Batch, Committed

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb

    from headwater.store.catalog import Catalog, Sink, Source
    from headwater.store.occurrences import Ids


class BatchWriting:
    """Writes a flow's batch: files, records, results with their edges, the live graph."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, catalog: Catalog, flow: str) -> None:
        self._connection, self._catalog, self._flow = connection, catalog, flow

    def write(self, batch: Batch, seq: int) -> Committed:
        """Insert all of a batch."""
        connection = self._connection
        ids: dict[str, pa.Int64Array] = {}
        reached: dict[str, list[Ids]] = {}
        results = records = 0
        for name, files in batch.files.items():
            ingest.insert_files(connection, self._source(name), files)
        for name, arrived in batch.arrivals.items():
            if arrived:
                ingest.insert_arrivals(connection, self._source(name), arrived, seq)
        for name, rows in batch.records.items():
            records += ingest.insert_records(connection, self._source(name), rows, seq)
        for name, part in batch.results.items():
            sink = self._sink(name)
            final = ingest.insert_results(connection, sink, part, seq)
            ids[name] = pa.array(final)
            results += len(final)
            for origin, sets in part.origins.items():
                source = self._source(origin)
                found = ingest.insert_edges(connection, sink, source, final, sets, seq)
                reached.setdefault(origin, []).append(found)
            for origin, ends in part.intervals.items():
                source = self._source(origin)
                ingest.insert_spans(connection, sink, source, final, ends, seq)
        edges = _count(reached)
        connection.execute(
            "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, now())",
            [seq, batch.query_id, batch.batch, batch.watermark, results, edges, records],
        )
        if batch.resolve is not None:
            # A replay reads the batch as the store has it.
            self._resolve(batch, ids, reached, seq)
            edges = _count(reached)
            connection.execute("UPDATE batches SET edges = ? WHERE seq = ?", [edges, seq])
        if batch.last:
            connection.execute(
                "UPDATE flows SET finished = true WHERE query_id = ?", [batch.query_id]
            )
        vertices, labels = self._write_graph(batch, reached, seq)
        return Committed(seq, False, ids, results, edges, records, vertices, labels)

    def _resolve(
        self,
        batch: Batch,
        ids: dict[str, pa.Int64Array],
        reached: dict[str, list[Ids]],
        seq: int,
    ) -> None:
        """Write the edges of results that came without their sets."""
        assert batch.resolve is not None
        for name, final in ids.items():
            sink = self._sink(name)
            if not sink.resolved or not len(final):
                continue
            pairs = batch.resolve(self._connection, name, final.to_numpy())
            for origin, found in pairs.items():
                source = self._source(origin)
                records = found["source_id"].to_numpy()
                results = found["result_id"].to_numpy()
                ingest.insert_pairs(self._connection, sink, source, results, records, seq)
                reached.setdefault(origin, []).append(records)

    def _write_graph(
        self, batch: Batch, reached: dict[str, list[Ids]], seq: int
    ) -> tuple[int, int]:
        """Write what the batch adds to the live graph; how many vertices and labels."""
        if batch.graph is None:
            return 0, 0
        changes = batch.graph.changes(
            {source: np.concatenate(parts) for source, parts in reached.items()},
            lambda name, ids: ingest.known_vertices(self._connection, self._source(name), ids),
            last=batch.last,
        )
        for name, new in changes.vertices.items():
            ingest.insert_vertices(self._connection, self._source(name), new, seq)
        for name, past in changes.labels.items():
            ingest.insert_labels(self._connection, self._source(name), past, seq)
        return (
            sum(len(new.ids) for new in changes.vertices.values()),
            sum(len(past) for past in changes.labels.values()),
        )

    def answer(self, batch: Batch, seq: int) -> Committed:
        """What was answered when the batch was written."""
        ids = {
            name: pa.array(ingest.result_ids(self._connection, self._sink(name), part, seq)[0])
            for name, part in batch.results.items()
        }
        rows = self._connection.execute(
            "SELECT results, edges, records FROM batches WHERE seq = ?", [seq]
        ).fetchall()
        return Committed(seq, True, ids, *rows[0])

    def _source(self, name: str) -> Source:
        return self._catalog.source(f"{self._flow}/{name}")

    def _sink(self, name: str) -> Sink:
        return self._catalog.sink(f"{self._flow}/{name}")


def _count(reached: Mapping[str, list[Ids]]) -> int:
    return sum(len(found) for parts in reached.values() for found in parts)
