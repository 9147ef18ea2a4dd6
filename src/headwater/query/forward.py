"""Forward: from source records to the results that they reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.errors import UnknownId
from headwater.query import records
from headwater.query.columns import Own, fixed
from headwater.query.finality import final
from headwater.query.naming import by, united
from headwater.query.results import ask, view
from headwater.store.among import among
from headwater.store.batch import ID, SEQ
from headwater.store.schema import quoted

if TYPE_CHECKING:
    from headwater.query.edges import Edges
    from headwater.query.predicate import Selection
    from headwater.store.catalog import Sink, Source
    from headwater.store.reader import Reader

Ids = npt.NDArray[np.int64]

ASKED = "__hw_asked"
"""The record whose result a row is; a name that no column of the user's can have."""


def forward(
    found: Edges,
    source: Source,
    sinks: tuple[Sink, ...],
    ids: Ids,
    selection: Selection,
    *,
    many: bool,
    given: object = None,
) -> pa.Table:
    """The results of records: `sink`, `result_id`, `event_time`, `final`, then own columns.

    With `many`, a first column `id` says whose result each is. A record that reached no result has
    one row without a result. `given` is the id as the user wrote it, for messages.
    """
    names = ("id",) * many + ("sink", "result_id", "event_time", "final")
    own = Own(sinks, names)
    reader = found.reader
    edges = found.of_records(source, sinks, ids)
    numbers = edges["sink_no"].to_numpy()
    tables = []
    for sink in sinks:
        part = edges.filter(pa.array(numbers == sink.no))
        if part.num_rows:
            tables.append(_results(reader, sink, part, selection, own))
    asked = np.isin(numbers, [sink.no for sink in sinks])
    idle = np.setdiff1d(ids, edges["source_id"].to_numpy()[asked])
    if len(idle):
        touched = np.intersect1d(idle, edges["source_id"].to_numpy())
        rest = np.setdiff1d(idle, touched)
        known = np.union1d(touched, records.is_known(reader, source, rest) if len(rest) else rest)
        if not many and not len(known):
            name = int(ids[0]) if given is None else given
            raise UnknownId(
                f"source {source.name!r} has no record with the id {name!r}; "
                "a record that reached no result is only known if the source keeps its records "
                "or can be read again"
            )
        tables.append(pa.table({ASKED: known}))
    fields = [field for sink in sinks for field in own.fields(sink)]
    shown = fixed("sink", "result_id", "event_time", "final")
    answer = united(tables, pa.schema([(ASKED, pa.int64()), *shown, *fields]))
    ends = final(found, source, np.unique(answer[ASKED].to_numpy()))
    past = pa.array([ends[i] for i in answer[ASKED].to_pylist()], pa.bool_())
    answer = answer.set_column(4, "final", past)
    if many:
        return by(ASKED, answer).rename_columns([*names, *answer.column_names[len(names) :]])
    return answer.drop_columns([ASKED])


def _results(
    reader: Reader, sink: Sink, edges: pa.Table, selection: Selection, own: Own
) -> pa.Table:
    condition, params = selection.sql()
    names = own.names(sink)
    user = Own([sink], ("result_id", "event_time")).names(sink)
    columns = "".join(f", {quoted(user[c])} AS {quoted(names[c])}" for c in user)
    wanted, ids_given = among(np.unique(edges["result_id"].to_numpy()))
    batches, batches_given = among(np.unique(edges["seq"].to_numpy()))
    rows = ask(
        reader,
        f"SELECT result_id AS {ID}, event_time{columns} FROM {view(sink)} "
        f"WHERE {SEQ} {batches} AND result_id {wanted} AND {condition}",
        [*batches_given, *ids_given, *params],
        selection,
    )
    ids = edges["result_id"].to_numpy()
    if selection.filters:
        edges = edges.filter(pa.array(np.isin(ids, rows[ID].to_numpy())))
        ids = edges["result_id"].to_numpy()
    table = records.beside(rows, ids).drop_columns([ID])
    table = table.append_column(ASKED, edges["source_id"])
    table = table.append_column("result_id", edges["result_id"])
    return table.append_column("sink", pa.repeat(pa.scalar(sink.name), table.num_rows))
