"""A micro-batch's rows as Arrow, sorted out into results with their sets and records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema

from headwater.lowering.eager import origin
from headwater.lowering.intervals import HIGH, LOW
from headwater.lowering.outputs import CONTENT, ID, OUTPUT, PAYLOAD, Part
from headwater.names import TIME
from headwater.store.batch import ResultSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.types import StructType

UTC_TIME = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True)
class Decoded:
    """The results of each sink and the kept records of each source.

    For a live graph also the `times` of records, by source (`__hw_id`, `__hw_time`), and the rows
    that entered `sessions`, by step, with the sets of their ids by source.
    """

    results: dict[str, ResultSet]
    records: dict[str, pa.Table]
    times: dict[str, pa.Table]
    sessions: dict[str, ResultSet]
    letters: dict[str, pa.Table] = field(default_factory=dict)
    """Messages that could not be decoded, by source."""


def arrow_schema(schema: StructType) -> pa.Schema:
    """A Spark schema as the store has it: times in UTC."""
    return to_arrow_schema(schema, timezone="UTC", prefers_large_types=False)


def decode(parts: Sequence[Part], rows: pa.Table, first: int, *, tagged: bool) -> Decoded:
    """Sort a batch's rows out by part; `first` is the number of the first nameless result."""
    results: dict[str, ResultSet] = {}
    records: dict[str, pa.Table] = {}
    times: dict[str, pa.Table] = {}
    sessions: dict[str, ResultSet] = {}
    letters: dict[str, pa.Table] = {}
    for number, part in enumerate(parts):
        own = rows
        if tagged:
            own = rows.filter(pc.equal(rows[OUTPUT], number))
        if part.kind in ("times", "sessions"):
            told = _table([ID, TIME], [own[ID], _time(own[TIME])], own.select([]))
            if part.kind == "times":
                times[part.name] = told
            else:
                sessions[part.name] = ResultSet(told, _provenance(part, own)[0])
            continue
        columns = _payload(own, number, part) if tagged else own
        user = columns.select(part.schema.fieldNames()).cast(arrow_schema(part.schema))
        if part.kind == "records":
            records[part.name] = _records(own, user)
        elif part.kind == "letters":
            letters[part.name] = user
        elif part.capture == "none":
            results[part.name] = _unidentified(part, user, first)
        else:
            table = _table([ID, TIME], [own[ID], _time(own[TIME])], user)
            origins, intervals = _provenance(part, own)
            results[part.name] = ResultSet(table, origins, part.unique, intervals)
    return Decoded(results, records, times, sessions, letters)


def _provenance(
    part: Part, own: pa.Table
) -> tuple[dict[str, pa.ChunkedArray], dict[str, tuple[pa.ChunkedArray, pa.ChunkedArray]]]:
    """A part's sets of ids, or its intervals, by source."""
    if part.capture == "eager":
        return {source: own[origin(source)] for source in part.origins}, {}
    if part.capture == "intervals":
        return {}, {source: (own[LOW + source], own[HIGH + source]) for source in part.origins}
    return {}, {}


def decode_records(part: Part, rows: pa.Table) -> pa.Table:
    """The records of a plan that has no other rows."""
    return _records(rows, rows.select(part.schema.fieldNames()).cast(arrow_schema(part.schema)))


def _records(own: pa.Table, user: pa.Table) -> pa.Table:
    return _table([ID, TIME, CONTENT], [own[ID], _time(own[TIME]), own[CONTENT]], user)


def _payload(own: pa.Table, number: int, part: Part) -> pa.Table:
    payload = own[f"{PAYLOAD}{number}"].combine_chunks()
    names = part.schema.fieldNames()
    return pa.table([pc.struct_field(payload, [i]) for i in range(len(names))], names=names)


def _unidentified(part: Part, user: pa.Table, first: int) -> ResultSet:
    """Results without capture: ids count the rows, times come from the column that Spark marks."""
    ids = pa.array(first + np.arange(len(user), dtype=np.int64))
    time: pa.ChunkedArray | pa.Array = pa.nulls(len(user), UTC_TIME)
    if part.event_time is not None:
        time = user[part.event_time]
        if pa.types.is_struct(time.type):
            ends = pc.struct_field(time, "end").cast(pa.int64())
            time = pc.subtract(ends, 1).cast(UTC_TIME)
    return ResultSet(_table([ID, TIME], [ids, _time(time)], user), unique=True)


def _time(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    return column.cast(UTC_TIME)


def _table(names: list[str], fixed: list[pa.ChunkedArray | pa.Array], user: pa.Table) -> pa.Table:
    return pa.table([*fixed, *user.columns], names=[*names, *user.column_names])
