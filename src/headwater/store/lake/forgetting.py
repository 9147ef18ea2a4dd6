"""A lake that forgets its oldest batches: files that have nothing else go, others are rewritten."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from headwater.store import retention
from headwater.store.batch import ID, SEQ
from headwater.store.lake.compacting import rewritten
from headwater.store.lake.scanning import scanned
from headwater.store.lake.tables import columns_of

if TYPE_CHECKING:
    from datetime import timedelta

    from pyspark.sql import DataFrame, SparkSession

    from headwater.store.lake.writer import LakeWriter
    from headwater.store.retention import Forgotten

_ORDERS = {
    "edges": ("seq", "sink_no", "result_id"),
    "edges_by_record": ("source_no", "source_id", "sink_no", "result_id"),
    "results_by_id": ("sink_no", "result_id"),
    "spans": ("seq", "sink_no", "result_id"),
}


def forget(
    writer: LakeWriter,
    spark: SparkSession,
    *,
    older_than: timedelta | None = None,
    most: int | None = None,
) -> Forgotten:
    """Forget the oldest batches: those beyond an age, or beyond a size of the lake's files."""
    with writer.batch():
        _, used, _ = writer.size()
        last, gone = retention.cut(writer, older_than=older_than, most=most, used=used)
        if not last:
            return gone
        for sink in writer.catalog.sinks:
            _drop(writer, spark, f"result_{sink.no}", SEQ, (SEQ, ID), last)
        for relation, order in _ORDERS.items():
            _drop(writer, spark, relation, "seq", order, last)
        _drop_vertices(writer, spark, last)
        records = 0
        for source in writer.catalog.sources:
            if source.kept and retention.all_eager(writer.catalog, source):
                held = _held(writer, spark, source.no)
                records += _drop(writer, spark, f"record_{source.no}", SEQ, (SEQ, ID), last, held)
        writer.note("forgotten", str(last))
    return replace(gone, records=records)


def _drop_vertices(writer: LakeWriter, spark: SparkSession, last: int) -> None:
    """Drop what a live graph has of those batches; a vertex stays while it may get an edge."""
    known = ["source_no", "id"]
    vertices, labels = writer.table("vertices"), writer.table("labels")
    for table in (vertices, labels):
        table.look()
    old, labelled = vertices.files_from("seq", last), labels.files()
    if not old or not labelled:
        return
    rows, past = (
        scanned(spark, writer.place, files, table.columns)
        for files, table in ((old, vertices), (labelled, labels))
    )
    gone = rows.filter(F.col("seq") <= last).select(known).join(past, known, "left_semi")
    if files := writer.files("edges"):
        edges = scanned(spark, writer.place, files, columns_of("edges"))
        edges = edges.select("source_no", F.col("source_id").alias("id"))
        gone = gone.join(edges, known, "left_anti")
    if not _any(gone):
        return
    for table, files, all_rows in ((vertices, old, rows), (labels, labelled, past)):
        kept = all_rows.join(gone, known, "left_anti")
        new = (
            rewritten(writer, kept, table.relation, ("source_no", "id"), table)
            if _any(kept)
            else []
        )
        table.replace_files(new, files)


def _held(writer: LakeWriter, spark: SparkSession, source_no: int) -> DataFrame | None:
    """The records that remembered results have."""
    files = writer.files("edges")
    if not files:
        return None
    edges = scanned(spark, writer.place, files, columns_of("edges"))
    edges = edges.filter(F.col("source_no") == source_no)
    return edges.select(F.col("source_id").alias(ID)).distinct()


def _drop(
    writer: LakeWriter,
    spark: SparkSession,
    relation: str,
    seq: str,
    order: tuple[str, ...],
    last: int,
    held: DataFrame | None = None,
) -> int:
    """Drop the rows of batches up to `last`, but those that are held; how many went."""
    table = writer.table(relation)
    table.look()
    _, _, before = table.size()
    old = table.files_from(seq, last)
    if not old:
        return 0
    rows = scanned(spark, writer.place, old, table.columns)
    kept = rows.filter(F.col(seq) > last)
    if held is not None:
        kept = kept.unionByName(rows.filter(F.col(seq) <= last).join(held, ID, "left_semi"))
    new = rewritten(writer, kept, relation, order, table) if _any(kept) else []
    table.replace_files(new, old)
    table.look()
    _, _, after = table.size()
    return before - after


def _any(rows: DataFrame) -> bool:
    return bool(rows.head(1))
