"""Records that a store does not keep, for Spark: all of a source, read again."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from headwater.columns import identity_hash, quoted
from headwater.errors import StoreError
from headwater.lowering.identity import file_key
from headwater.store import reread
from headwater.store.batch import ID, TIME
from headwater.store.files import ROW_BITS, local, numbered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headwater.store.catalog import Source
    from headwater.store.reread import Query

_THERE, _SAME = "__hw_there", "__hw_same"


def again(spark: SparkSession, source: Source, query: Query) -> DataFrame:
    """The records of a source: `__hw_id`, `__hw_time`, own columns; each id once."""
    if source.is_step or source.definition.get("mapreduce") or not reread.possible(source):
        raise StoreError(
            f"the store keeps no records of source {source.name!r}, which can't be read again: "
            "start its flow with keep='all', or ask with columns=False for ids alone"
        )
    if source.id["kind"] == "position":
        rows = _by_position(spark, source, query)
    else:
        rows = _once(reread.frame(source), source)
    return unerased(spark, rows, source, query)


def unerased(spark: SparkSession, rows: DataFrame, source: Source, query: Query) -> DataFrame:
    """Records but those whose contents were erased, which files may still have for a while."""
    erased = query(f"SELECT id AS {ID} FROM erased WHERE source_no = {source.no}")
    if not erased.num_rows:
        return rows
    return rows.join(F.broadcast(spark.createDataFrame(erased)), ID, "left_anti")


def beside(
    spark: SparkSession, edges: DataFrame, records: DataFrame, source: Source, query: Query
) -> DataFrame:
    """Edges with the records that they lead to; one that is not there any more is an error."""
    records = records.withColumn(_THERE, F.lit(True))
    erased = query(f"SELECT id AS {ID} FROM erased WHERE source_no = {source.no}")
    if erased.num_rows:
        gone = spark.createDataFrame(erased).withColumn(_THERE, F.lit(True))
        records = records.unionByName(gone, allowMissingColumns=True)
    joined = edges.join(records, edges["source_id"] == records[ID], "left")
    missing = F.raise_error(
        F.concat(
            F.lit(f"can't read source {source.name!r} again: the record "),
            F.col("source_id").cast("string"),
            F.lit(
                " is no longer there; put its file back, or ask with columns=False for ids alone"
            ),
        )
    )
    return joined.filter(F.when(F.col(_THERE), True).otherwise(missing.cast("boolean")))


def _by_position(spark: SparkSession, source: Source, query: Query) -> DataFrame:
    definition = source.definition
    files = [local(path) for path in numbered(source, query).values()]
    moment = definition.get("event_time")
    time = (F.lit(None) if moment is None else F.expr(str(moment))).cast("timestamp").alias(TIME)
    form = str(definition["schema"])
    if not files:
        nothing = F.lit(None).cast("bigint").alias(ID)
        return spark.createDataFrame([], form).select(nothing, time, "*")
    for path in files:
        if not os.path.exists(path):
            raise reread.gone(source, path)
    options = {k: str(v) for k, v in (definition.get("options") or {}).items()}
    rows = spark.read.schema(form).options(**options).parquet(*files)
    key = F.shiftleft(file_key(), ROW_BITS).bitwiseOR(F.col("_metadata.row_index"))
    return rows.select(key.alias(ID), time, *map(quoted, rows.columns))


def _once(rows: DataFrame, source: Source) -> DataFrame:
    """Equal rows are one record; different ones under one id can't both be it."""
    own = [name for name in rows.columns if name not in (ID, TIME)]
    content = identity_hash(rows.schema[name] for name in own) if own else F.lit(0)
    found = (
        rows.withColumn(_SAME, content)
        .groupBy(ID)
        .agg(
            F.first(TIME).alias(TIME),
            F.first(F.struct(*map(quoted, own))).alias(_THERE),
            (F.min(_SAME) == F.max(_SAME)).alias(_SAME),
        )
    )
    mixed = F.raise_error(
        F.concat(
            F.lit(f"source {source.name!r} has different records with the id "),
            F.col(ID).cast("string"),
        )
    )
    found = found.filter(F.when(F.col(_SAME), True).otherwise(mixed.cast("boolean")))
    parts = [F.col(_THERE)[name].alias(name) for name in own]
    return found.select(ID, TIME, *parts)
