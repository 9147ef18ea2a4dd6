"""Housekeeping of a lake by Spark: few large files, sorted for look-ups in both directions.

What is rewritten replaces what it was made of in one commit of its table, so that readers see
either. Files that no table has any more are deleted once no reader can be reading them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headwater.store.batch import ID, SEQ
from headwater.store.compaction import COMPACTED
from headwater.store.lake.scanning import numbered, scanned
from headwater.store.lake.tables import GROWING, JOBS, columns_of
from headwater.store.lake.tasks import TOLD, Rewrite, told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.store.lake.tables import Added, Table
    from headwater.store.lake.writer import LakeWriter

ROWS = 5_000_000
"""Rows of a file that is written here, about."""
SMALL = 32 << 20
"""Bytes of a file below which it is worth while to put it together with others."""
FEW = 8
"""Small files, or sorted runs, that may stay as they are."""
KEPT_HOURS = 168
"""Hours for which files that were replaced stay for those who read them."""
_APP = "compacting"
_BY_RECORD = ("source_no", "source_id", "sink_no", "result_id")
_BY_RESULT = ("sink_no", "result_id")
_ORDERS = {
    "edges": ("seq", "sink_no", "result_id"),
    "spans": ("seq", "sink_no", "result_id"),
    "vertices": ("source_no", "id"),
    "labels": ("source_no", "id"),
    "jobs": ("job_no", "seq"),
    "job_batches": ("job_no", "batch"),
    "entities": ("id",),
    "dependencies": ("output", "input"),
    "dependencies_by_input": ("input", "output"),
}
"""By what the rows of a relation are sorted when small files are put together."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """What was done."""

    edges: int
    """Edges that were sorted by record."""
    replaced: int
    """Files that larger ones stand for now."""
    deleted: int
    """Files that were deleted."""


def compact(writer: LakeWriter, spark: SparkSession, keep_hours: int = KEPT_HOURS) -> Compacted:
    """Sort the edges that came since the last time, put small files together, delete old ones."""
    with writer.batch() as following:
        upto = following - 1
        edges = 0
        if upto > int(writer.query(COMPACTED)[0][0].as_py()):
            edges = _sorted_runs(writer, spark, upto)
            writer.note("compacted", str(upto))
        replaced = _merge_runs(writer, spark)
        there = [name for name in _ORDERS if name not in JOBS or name in writer.job_relations()]
        for relation in (*there, *writer.own_relations()):
            replaced += _gather(writer, spark, relation)
        for relation in GROWING:
            replaced += writer.table(relation).gather()
        deleted = sum(table.vacuum(keep_hours) for table in writer.tables())
    return Compacted(edges, replaced, deleted)


def _sorted_runs(writer: LakeWriter, spark: SparkSession, upto: int) -> int:
    """Add the edges of new batches as a run by record, and their results as one by id."""
    if not (files := writer.files("edges")):
        return 0
    edges = scanned(spark, writer.place, files, columns_of("edges"))
    added = 0
    for relation, rows, order in (
        ("edges_by_record", edges, _BY_RECORD),
        ("results_by_id", _results(writer, spark), _BY_RESULT),
    ):
        table = writer.table(relation)
        table.look()
        # What a compaction that was killed has added is there, though `meta` does not say so.
        after = table.transaction(_APP) or 0
        new = rows.filter(F.col("seq").between(after + 1, upto))
        run = rewritten(writer, new, relation, order)
        table.add(run, _APP, upto)
        added += sum(file.rows for file in run) if rows is edges else 0
    return added


def _results(writer: LakeWriter, spark: SparkSession) -> DataFrame:
    """The results and their batches.

    From the results, which are fewer, and each is there once: the edges would have to be grouped.
    """
    named = [(sink.no, writer.files(f"result_{sink.no}")) for sink in writer.catalog.sinks]
    return reduce(
        DataFrame.unionAll,
        [
            scanned(spark, writer.place, files, writer.table(f"result_{no}").columns).select(
                F.lit(no).cast("smallint").alias("sink_no"),
                F.col(ID).alias("result_id"),
                F.col(SEQ).alias("seq"),
            )
            for no, files in named
            if files
        ],
    )


def _merge_runs(writer: LakeWriter, spark: SparkSession) -> int:
    """Make one run of the runs, once there are many; how many files it stands for."""
    replaced = 0
    for relation, order in (("edges_by_record", _BY_RECORD), ("results_by_id", _BY_RESULT)):
        table = writer.table(relation)
        table.look()
        if table.overlap(order[1]) > FEW:
            replaced += _replace(writer, spark, relation, table, order)
    return replaced


def _gather(writer: LakeWriter, spark: SparkSession, relation: str) -> int:
    """Put the small files of a relation together; how many."""
    table = writer.table(relation)
    table.look()
    small = table.files(below=SMALL)
    if len(small) <= FEW:
        return 0
    order = _ORDERS.get(relation, ("__hw_seq", "__hw_id"))
    return _replace(writer, spark, relation, table, order, small)


def _replace(
    writer: LakeWriter,
    spark: SparkSession,
    relation: str,
    table: Table,
    order: tuple[str, ...],
    files: list[str] | None = None,
) -> int:
    old = table.files() if files is None else files
    rows = scanned(spark, writer.place, old, table.columns)
    table.replace_files(rewritten(writer, rows, relation, order, table), old)
    return len(old)


def rewritten(
    writer: LakeWriter,
    rows: DataFrame,
    relation: str,
    order: tuple[str, ...],
    table: Table | None = None,
) -> list[Added]:
    """Have tasks write rows in an order, as files of a relation that no table has yet."""
    columns = table.columns if table is not None else columns_of(relation)
    parts = max(1, math.ceil(rows.count() / ROWS))
    spread = rows.select(*(F.col(f"`{name}`") for name in columns.names))
    spread = spread.repartitionByRange(parts, *order) if parts > 1 else spread.coalesce(1)
    ordered = spread.sortWithinPartitions(*order)
    task = Rewrite(writer.place, relation, columns)
    return told(numbered(ordered).mapInArrow(task, TOLD).toArrow())
