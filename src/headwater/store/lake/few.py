"""A batch of few rows into a lake, from the driver: such as what came of a job's execution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.store.lake.tasks import Sorted, Task, told

if TYPE_CHECKING:
    from headwater.store.batch import Batch, Committed
    from headwater.store.lake.writer import LakeWriter


def commit_few(writer: LakeWriter, flow: str, batch: Batch) -> Committed:
    """Write the results of a batch, each with an id that none had before, without Spark."""
    with writer.batch() as seq:
        catalog = writer.catalog
        task = Task(
            writer.place,
            seq,
            {sink.name: sink for sink in catalog.sinks if sink.flow == flow},
            {source.name: source for source in catalog.sources if source.flow == flow},
            {},
            lambda _rows, _piece: Sorted(batch.results, {}, {}),
        )
        # What a task is given tells it nothing here: the rows are at hand.
        given = pa.RecordBatch.from_pydict({"all": [True]})
        added = told(pa.Table.from_batches(task([given])))
        return writer.commit(
            batch.query_id, batch.batch, added, watermark=batch.watermark, last=False, rows={}
        )
