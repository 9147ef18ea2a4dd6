"""Results of a sink, and the edges of a selection of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.errors import PredicateError
from headwater.query.columns import Own, fixed
from headwater.query.naming import Names, united
from headwater.store.batch import ID, SEQ, TIME
from headwater.store.schema import quoted
from headwater.store.select import QueryFailed

if TYPE_CHECKING:
    from headwater.query.predicate import Selection
    from headwater.store.catalog import Sink
    from headwater.store.reader import Reader

FIXED = ("result_id", "event_time")


def results(reader: Reader, sink: Sink, selection: Selection, limit: int | None = None) -> pa.Table:
    """The selected results: `result_id`, `event_time`, then their own columns."""
    own = Own([sink], FIXED)
    condition, params = selection.sql()
    columns = ", ".join(quoted(name) for name in (*FIXED, *own.names(sink).values()))
    sql = f"SELECT {columns} FROM {view(sink)} WHERE {condition}"
    if limit is not None:
        sql += f" LIMIT {int(limit)}"
    rows = ask(reader, sql, params, selection)
    return united([rows], pa.schema([*fixed(*FIXED), *own.fields(sink)]))


def page(
    reader: Reader,
    sink: Sink,
    selection: Selection,
    limit: int,
    *,
    newest: bool = True,
    after: tuple[int, int] | None = None,
) -> tuple[pa.Table, tuple[int, int] | None]:
    """Some of the selected results by delivery, and the place after which the next ones are.

    A place is a batch and a result; it stays good while results come.
    """
    own = Own([sink], FIXED)
    condition, params = selection.sql()
    way, beyond = ("DESC", "<") if newest else ("ASC", ">")
    if after is not None:
        seq, result = after
        condition += f" AND ({SEQ} {beyond} ? OR ({SEQ} = ? AND result_id {beyond} ?))"
        params = [*params, seq, seq, result]
    columns = ", ".join(quoted(name) for name in (*FIXED, *own.names(sink).values(), SEQ))
    rows = ask(
        reader,
        f"SELECT {columns} FROM {view(sink)} WHERE {condition} "
        f"ORDER BY {SEQ} {way}, result_id {way} LIMIT {int(limit) + 1}",
        params,
        selection,
    )
    shown = rows.slice(0, limit)
    last = None
    if rows.num_rows > limit:
        last = (shown[SEQ][-1].as_py(), shown["result_id"][-1].as_py())
    return united([shown], pa.schema([*fixed(*FIXED), *own.fields(sink)])), last


def exists(reader: Reader, sink: Sink, result_id: int) -> bool:
    """Whether the sink has this result."""
    sql = f"SELECT 1 AS one FROM result_{sink.no} WHERE {ID} = ?"
    return bool(reader.query(sql, [result_id]).num_rows)


def ask(reader: Reader, sql: str, params: list[object], selection: Selection) -> pa.Table:
    """A query that has the user's predicate in it; what fails then is the predicate."""
    try:
        return reader.query(sql, params)
    except QueryFailed as error:
        if selection.where is None:
            raise
        raise PredicateError(f"where={selection.where!r} can't be evaluated: {error}") from error


def view(sink: Sink, names: Names | None = None) -> str:
    """A sink's results under the names that users know, as a subquery."""
    names = Own([sink], FIXED).names(sink) if names is None else names
    own = "".join(f", {quoted(column)} AS {quoted(name)}" for column, name in names.items())
    return f"(SELECT {ID} AS result_id, {TIME} AS event_time{own}, {SEQ} FROM result_{sink.no})"
