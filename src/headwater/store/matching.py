"""Records by a predicate of the user's: among the store's copies, or read again from the source.

A predicate is SQL over the source's own columns, and over `id` and `event_time` where the source
has no columns of these names. Wherever it runs, it reaches no file but those of its source.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.errors import PredicateError, StoreError
from headwater.store import reread, topics
from headwater.store.batch import ID, SEQ, TIME
from headwater.store.failures import one_line
from headwater.store.files import ROW_BITS, data_files, local, numbered
from headwater.store.ingest import visible
from headwater.store.schema import quoted
from headwater.store.select import QueryFailed

if TYPE_CHECKING:
    from headwater.store.catalog import Source

Ids = npt.NDArray[np.int64]
Query = Callable[..., pa.Table]
_BY_IDS = "give ids= in place of where="
_FOUND = pa.schema([(ID, pa.int64())])


def require_predicate(source: Source, where: str) -> None:
    """Refuse a predicate that can't be asked of the source's columns."""
    fields = [(ID, pa.int64()), (TIME, pa.timestamp("us", tz="UTC")), *source.schema]
    try:
        _matches(where, source.schema.names, pa.schema(fields).empty_table())
    except duckdb.Error as error:
        raise refused(where, error) from error


def require_contents(source: Source) -> None:
    """Refuse a source whose records nobody has, or has to be asked for one by one."""
    lost = source.is_step or topics.in_topics(source) or not reread.possible(source)
    if not source.kept and lost:
        raise StoreError(
            f"source {source.name!r} keeps no records and can't be read again, so where= has "
            "nothing to go by: give ids=, or keep='contributing' when the flow starts"
        )


def kept(
    query: Query, source: Source, where: str, after: int, upto: int | None, among: Ids | None = None
) -> Ids:
    """The records of batches after one and up to another that the store keeps and that match."""
    parts, params = [f"{SEQ} > {after}"], list[object]()
    if upto is not None:
        parts.append(f"{SEQ} <= {upto}")
    if among is not None:
        parts.append(f"{ID} IN (SELECT unnest(?::BIGINT[]))")
        params.append(among.tolist())
    rows = f"(SELECT * FROM record_{source.no} WHERE {' AND '.join(parts)})"
    try:
        found = query(_sql(where, source.schema.names, rows), params)
    except QueryFailed as error:
        raise refused(where, error) from error
    ids: Ids = found[ID].to_numpy()
    return ids


def again(query: Query, source: Source, where: str) -> Ids:
    """The records in the source's own files that match."""
    path = str(source.definition["path"])
    try:
        if source.id["kind"] == "position":
            parts = _by_position(query, source, where)
        elif (
            source.id["kind"] == "column"
            and source.definition["format"] == "parquet"
            and (files := data_files(path, source.definition.get("options") or {})) is not None
        ):
            if not files:
                raise reread.gone(source, path, _BY_IDS)
            relation = "read_parquet(?, union_by_name=true)"
            parts = [_parquet(source, relation, files, source.id["columns"][0], where)]
        else:
            parts = [_by_spark(source, where)]
    except (duckdb.ConversionException, duckdb.OutOfRangeException) as error:
        raise refused(where, error) from error
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        raise StoreError(
            f"can't read source {source.name!r} again from {path}: {one_line(error)}; {_BY_IDS}"
        ) from error
    found: Ids = np.unique(np.concatenate([np.empty(0, np.int64), *parts]))
    return found


def refused(where: str, error: BaseException) -> PredicateError:
    """A predicate that could not be evaluated."""
    return PredicateError(f"where={where!r} can't be evaluated: {one_line(error)}")


def _by_position(query: Query, source: Source, where: str) -> list[Ids]:
    found = []
    for key, told in numbered(source, query).items():
        path = local(told)
        if not os.path.exists(path):
            raise reread.gone(source, path, _BY_IDS)
        relation = "read_parquet(?, file_row_number=true)"
        places = _parquet(source, relation, [path], "file_row_number", where)
        found.append(places + (key << ROW_BITS))
    return found


def _parquet(
    source: Source, relation: str, files: Sequence[str], id_column: str, where: str
) -> Ids:
    with duckdb.connect() as connection:
        columns = reread.as_declared(connection, source, relation, files)
        paths = ", ".join("'" + path.replace("'", "''") + "'" for path in files)
        connection.execute(f"SET allowed_paths = [{paths}]")
        connection.execute("SET enable_external_access = false")
        rows = f"(SELECT {quoted(id_column)}::BIGINT AS {ID}, {columns} FROM {relation})"
        sql = _sql(where, source.schema.names, rows)
        found: Ids = connection.sql(sql, params=[list(files)]).to_arrow_table()[ID].to_numpy()
        return found


def _by_spark(source: Source, where: str) -> Ids:
    from pyspark.errors import PySparkException

    try:
        matches = partial(_each, where, source.schema.names)
        rows = reread.frame(source).mapInArrow(matches, f"{ID} bigint").toArrow()
    except PySparkException as error:
        raise StoreError(
            f"can't look for where={where!r} in source {source.name!r}, read again from "
            f"{source.definition['path']}: {one_line(error)[:300]}; {_BY_IDS}"
        ) from error
    found: Ids = rows[ID].to_numpy()
    return found


def _each(
    where: str, names: Sequence[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The ids of matching rows, batch by batch, as Spark's workers find them."""
    for batch in batches:
        found = _matches(where, names, pa.table(batch)).cast(_FOUND)
        yield from found.combine_chunks().to_batches()


def _matches(where: str, names: Sequence[str], rows: pa.Table) -> pa.Table:
    settings: dict[str, str | bool | int | float | list[str]] = {"enable_external_access": "false"}
    with duckdb.connect(config=settings) as connection, visible(connection, hw_rows=rows):
        connection.execute("SET TimeZone = 'UTC'")
        return connection.sql(_sql(where, names, "hw_rows")).to_arrow_table()


def _sql(where: str, names: Sequence[str], rows: str) -> str:
    own = {name.casefold() for name in names}
    columns = [quoted(name) for name in names]
    columns += [f"{c} AS {n}" for c, n in ((ID, "id"), (TIME, "event_time")) if n not in own]
    # The line break ends a comment at the predicate's end.
    return f"SELECT {ID} FROM (SELECT {ID}, {', '.join(columns)} FROM {rows}) WHERE ({where}\n)"
