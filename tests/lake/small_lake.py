"""A lake that takes the small batches of the store's tests, without Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headwater.store import Batch, Committed, EmbeddedWriter, FlowRegistration
from headwater.store.batch import ID
from headwater.store.lake.tasks import BEFORE, MIXED, RANK, STORED, Sorted, Task
from headwater.store.lake.writer import LakeWriter


class SmallLake:
    """Writes a lake as `EmbeddedWriter` writes a file, as far as tests need it."""

    def __init__(self, address: str) -> None:
        self.path = address
        self.lake = LakeWriter.open(address)

    def register(self, flow: FlowRegistration) -> None:
        self.lake.register(flow)

    def commit(self, batch: Batch) -> Committed:
        lake = self.lake
        flow = lake.catalog.flows[batch.query_id]
        sources = {one.name: one for one in lake.catalog.sources if one.flow == flow}
        sinks = {one.name: one for one in lake.catalog.sinks if one.flow == flow}
        with lake.batch() as seq:
            erased = {
                name: lake.query("SELECT id FROM erased WHERE source_no = ?", [one.no])[
                    "id"
                ].to_numpy()
                for name, one in sources.items()
            }
            task = Task(
                lake.place,
                seq,
                sinks,
                sources,
                {},
                lambda rows, n: Sorted({}, {}, {}),
                erased=erased,
            )
            repeats = {
                ("records", name): self._repeats(f"record_{sources[name].no}", rows)
                for name, rows in batch.records.items()
            }
            added = task._write(Sorted(batch.results, batch.records, repeats))
            files = [
                {"source_no": sources[name].no, "file_key": key, "path": path}
                for name, found in batch.files.items()
                for key, path in found.items()
            ]
            return lake.commit(
                batch.query_id,
                batch.batch,
                added,
                watermark=batch.watermark,
                last=batch.last,
                rows={"files": files},
            )

    def close(self) -> None:
        self.lake.close()

    def __enter__(self) -> SmallLake:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repeats(self, relation: str, rows: pa.Table) -> pa.Table:
        held = self.lake.query(f"SELECT {ID} AS id, __hw_content AS content FROM {relation}")
        known = dict(zip(*(column.to_pylist() for column in held.columns), strict=True))
        ids = rows[ID].to_pylist()
        return pa.table(
            {
                RANK: pa.array([1] * len(ids), pa.int64()),
                BEFORE: pa.array([1 if one in known else None for one in ids], pa.int64()),
                STORED: pa.array([known.get(one) for one in ids], pa.int64()),
                MIXED: pa.array([False] * len(ids)),
            }
        )


Writer = EmbeddedWriter | SmallLake


def opened(kind: str, path: Any) -> Writer:
    """A writer of a store in a file, or of a lake."""
    return SmallLake(f"delta:{path}") if kind == "lake" else EmbeddedWriter.open(path)
