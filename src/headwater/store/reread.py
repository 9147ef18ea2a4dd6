"""Reading records again from their source, by id, when the store did not keep them.

Parquet with an id column or positions is read without a JVM; hashed ids, and every other format,
need Spark's own reader and hash.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater import kafka_errors
from headwater.errors import StoreError
from headwater.store import topics
from headwater.store.batch import ID, TIME
from headwater.store.failures import one_line
from headwater.store.files import data_files, local, numbered
from headwater.store.ingest import collision, visible
from headwater.store.schema import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headwater.store.catalog import Source

FORMATS = ("parquet", "csv", "json", "orc", "text")
Ids = npt.NDArray[np.int64]
Query = Callable[..., pa.Table]


def possible(source: Source) -> bool:
    """Whether the source's records can be read again."""
    definition = source.definition
    if definition.get("mapreduce") or topics.in_topics(source):
        return True
    if not definition.get("path") or definition.get("format") not in FORMATS:
        return False
    return bool(source.id["kind"] != "position" or definition["format"] == "parquet")


def read(source: Source, ids: Ids, query: Query) -> pa.Table:
    """The source's records with these ids: `__hw_id`, `__hw_time`, own columns; each id once."""
    kind, path = source.id["kind"], str(source.definition["path"])
    if topics.in_topics(source):
        return _once(source, _by_spark(source, ids))
    if source.definition.get("mapreduce"):
        from headwater.mapreduce.asking import records

        return _once(source, records(query, source, ids))
    try:
        if kind == "position":
            rows = _by_position(source, ids, query)
        elif (
            kind == "column"
            and source.definition["format"] == "parquet"
            and (files := data_files(path, source.definition.get("options") or {})) is not None
        ):
            rows = _by_column(source, ids, files)
        else:
            rows = _by_spark(source, ids)
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        raise StoreError(
            f"can't read source {source.name!r} again from {path}: {one_line(error)}; "
            "columns=False answers without its records"
        ) from error
    return _once(source, rows)


def gone(
    source: Source, path: str, instead: str = "ask with columns=False for ids alone"
) -> StoreError:
    """A file or directory of the source that is no longer there."""
    return StoreError(
        f"can't read source {source.name!r} again: {path} is gone; put it back, or {instead}"
    )


def vanished(source: Source, ids: Sequence[int]) -> StoreError:
    """Records that reached a result but are not found any more."""
    count = "1 record" if len(ids) == 1 else f"{len(ids):,} records"
    verb = "is" if len(ids) == 1 else "are"
    if topics.in_topics(source):
        return StoreError(
            f"can't read source {source.name!r} again: {count} (id {ids[0]}) {verb} no longer in "
            f"{topics.topics_of(source)}, which deletes by its retention or compaction; ask with "
            "columns=False for ids alone, and keep='contributing' keeps records in the store"
        )
    return StoreError(
        f"can't read source {source.name!r} again: {count} (id {ids[0]}) {verb} no longer in "
        f"{source.definition['path']}; put its file back, or ask with columns=False for ids alone"
    )


def _by_column(source: Source, ids: Ids, files: Sequence[str]) -> pa.Table:
    if not files:
        raise gone(source, str(source.definition["path"]))
    column = source.id["columns"][0]
    return _parquet(source, "read_parquet(?, union_by_name=true)", files, column, ids)


def _by_position(source: Source, ids: Ids, query: Query) -> pa.Table:
    keys = ids >> 32
    tables = []
    for key, path in numbered(source, query, np.unique(keys).tolist()).items():
        path = local(path)
        if not os.path.exists(path):
            raise gone(source, path)
        rows = ids[keys == key] & 0xFFFFFFFF
        table = _parquet(
            source, "read_parquet(?, file_row_number=true)", [path], "file_row_number", rows
        )
        shifted = table[ID].to_numpy() + (key << 32)
        tables.append(table.set_column(0, ID, pa.array(shifted)))
    return pa.concat_tables(tables) if tables else _schema(source).empty_table()


def _parquet(
    source: Source, relation: str, files: Sequence[str], id_column: str, ids: Ids
) -> pa.Table:
    with duckdb.connect() as connection:
        columns = as_declared(connection, source, relation, files)
        where = f"{quoted(id_column)} IN (SELECT unnest(?::BIGINT[]))"
        if len(ids) <= 1000:
            # Constants are compared with the statistics of row groups, a subquery is not.
            where = f"{quoted(id_column)} IN ({', '.join(map(str, ids.tolist()))})"
        return connection.sql(
            f"SELECT {quoted(id_column)}::BIGINT AS {ID}, {columns} FROM {relation} WHERE {where}",
            params=[list(files), ids.tolist()] if len(ids) > 1000 else [list(files)],
        ).to_arrow_table()


def as_declared(
    connection: duckdb.DuckDBPyConnection, source: Source, relation: str, files: Sequence[str]
) -> str:
    """What to select from Parquet files: `__hw_time`, then own columns in the source's types."""
    connection.execute("SET TimeZone = 'UTC'")
    described = connection.execute(f"DESCRIBE FROM {relation}", [list(files)]).fetchall()
    present = {str(row[0]).casefold() for row in described}
    connection.register("hw_types", source.schema.empty_table())
    types = connection.execute("DESCRIBE hw_types").fetchall()
    # As Spark does with a given schema: absent columns are null, others take its types.
    own = {
        name: f"{quoted(name) if name.casefold() in present else 'NULL'}::{kind}"
        for name, kind, *_ in types
    }
    moment = own.get(str(source.definition.get("event_time")), "NULL")
    columns = "".join(f", {value} AS {quoted(name)}" for name, value in own.items())
    return f"({moment})::TIMESTAMPTZ AS {TIME}{columns}"


def _by_spark(source: Source, ids: Ids) -> pa.Table:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from headwater.columns import with_ids

    try:
        return with_ids(frame(source, ids), ID, ids).toArrow()
    except (PySparkException, Py4JError) as error:
        if topics.in_topics(source):
            raise topic_failure(source, ids, error) from error
        raise StoreError(
            f"can't read source {source.name!r} again from {source.definition['path']}: "
            f"{one_line(error)[:300]}; columns=False answers without its records"
        ) from error


def topic_failure(source: Source, ids: Sequence[int] | Ids, error: BaseException) -> StoreError:
    """Why messages could not be read again."""
    why = kafka_errors.explained(error)
    if why is kafka_errors.LOST:
        return vanished(source, [int(one) for one in ids])
    return StoreError(
        f"can't read source {source.name!r} again from {topics.topics_of(source)}: "
        f"{why or one_line(error)[:300]}; columns=False answers without its records"
    )


def frame(source: Source, ids: Ids | None = None) -> DataFrame:
    """All records of a source as Spark reads them: `__hw_id`, `__hw_time`, own columns.

    Of topics, where ids are given, only the parts that have these.
    """
    from pyspark.sql import functions as F

    from headwater.columns import identity_hash
    from headwater.session import adopt_or_start

    if topics.in_topics(source):
        return topics.frame(source, ids, ID, TIME)
    definition = source.definition
    path = str(definition["path"])
    if "://" not in path and not _exists(path):
        raise gone(source, path)
    rows = (
        adopt_or_start()
        .read.format(definition["format"])
        .schema(definition["schema"])
        .options(**{k: str(v) for k, v in (definition.get("options") or {}).items()})
        .load(path)
    )
    key = (
        F.col(_spark_name(source.id_columns[0])).cast("bigint")
        if source.id["kind"] == "column"
        else identity_hash(rows.schema[name] for name in source.id_columns)
    )
    moment = definition.get("event_time")
    time = F.lit(None) if moment is None else F.expr(str(moment))
    return rows.select(
        key.alias(ID), time.cast("timestamp").alias(TIME), *map(_spark_name, rows.columns)
    )


def _once(source: Source, rows: pa.Table) -> pa.Table:
    """Equal rows are one record; different ones under one id can't both be it."""
    schema = _schema(source)
    rows = pa.table([rows[field.name].cast(field.type) for field in schema], schema=schema)
    if len(np.unique(rows[ID].to_numpy())) == rows.num_rows:
        return rows
    with duckdb.connect() as connection, visible(connection, hw_rows=rows):
        connection.execute("SET TimeZone = 'UTC'")
        rows = connection.sql("SELECT DISTINCT * FROM hw_rows").to_arrow_table()
    found, counts = np.unique(rows[ID].to_numpy(), return_counts=True)
    if (counts > 1).any():
        raise collision(source, int(found[counts > 1][0]))
    return pa.table([rows[field.name].cast(field.type) for field in schema], schema=schema)


def _schema(source: Source) -> pa.Schema:
    time = pa.timestamp("us", tz="UTC")
    return pa.schema([(ID, pa.int64()), (TIME, time), *source.schema])


def _exists(path: str) -> bool:
    place = Path(local(path))
    return place.exists() or any(glob.iglob(str(place)))


def _spark_name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
