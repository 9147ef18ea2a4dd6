"""Sessions as a streaming run made them: given out once, and then begun anew.

A batch run would merge all rows within the gap. In a stream a session that was given out is gone,
so a row that comes later, but not too late, begins another beside it. The rows of a key go through
their batches in order here, and each is told which session it became part of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructField, StructType

from headwater.columns import is_window
from headwater.flow.windows import SESSION_MARK

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Times = npt.NDArray[np.int64]

WINDOW_MARKER = "spark.timeWindow"
SESSION = "headwater.session"


def is_session(field: StructField) -> bool:
    """Whether a column holds sessions, Spark's own or some that were assigned here."""
    metadata = field.metadata or {}
    return is_window(field.dataType) and (SESSION_MARK in metadata or SESSION in metadata)


def assign_sessions(
    df: DataFrame, span: str, batch: str, keys: list[Column], let_in: Times
) -> DataFrame:
    """Rows whose `span` is a session of their own, with the session that they became part of.

    Rows that were late are dropped. `let_in` has the step's limit for late rows, in milliseconds,
    by batch.
    """
    # Marked as windows Spark takes the spans as they are; marked as sessions it would merge them.
    schema = StructType([_unmarked(f) if f.name == span else f for f in df.schema.fields])

    def of_one_key(rows: pa.Table) -> pa.Table:
        spans = rows[span].combine_chunks()
        starts, ends = (_micros(pc.struct_field(spans, end)) for end in ("start", "end"))
        batches = rows[batch].to_numpy()
        kept, starts, ends = merged(starts, ends, batches, let_in * 1000)
        made = pa.StructArray.from_arrays(
            [pa.array(v, pa.int64()).cast(spans.type[0].type) for v in (starts, ends)],
            fields=list(spans.type),
        )
        at = rows.column_names.index(span)
        return rows.set_column(at, rows.schema.field(at), made).filter(pa.array(kept))

    return df.groupBy(*keys).applyInArrow(of_one_key, schema)


def merged(
    starts: Times, ends: Times, batches: Times, let_in: Times
) -> tuple[npt.NDArray[np.bool_], Times, Times]:
    """Which rows of one key were in time, and the start and end of the session of each.

    The last row comes after the session of the first two was given out, and is not late itself.

    >>> rows = [np.array(v) for v in ([0, 3, 4], [5, 8, 9], [0, 0, 2])]
    >>> [column.tolist() for column in merged(*rows, np.array([0, 0, 8]))]
    [[True, True, True], [0, 0, 4], [8, 8, 9]]
    """
    kept = ends > let_in[batches]
    starts, ends = starts.copy(), ends.copy()
    open_: list[tuple[int, int, list[int]]] = []
    for batch in np.unique(batches[kept]):
        limit = let_in[batch]
        arrived = np.flatnonzero(kept & (batches == batch))
        sessions = [session for session in open_ if session[1] > limit]
        sessions += [(int(starts[i]), int(ends[i]), [int(i)]) for i in arrived]
        open_ = []
        for start, end, rows in sorted(sessions, key=lambda session: session[0]):
            if open_ and start <= open_[-1][1]:
                begun, until, before = open_[-1]
                open_[-1] = (begun, max(until, end), before + rows)
            else:
                open_.append((start, end, rows))
        for start, end, rows in open_:
            starts[rows], ends[rows] = start, end
    return kept, starts, ends


def _unmarked(field: StructField) -> StructField:
    metadata: dict[str, Any] = {
        k: v for k, v in (field.metadata or {}).items() if k != SESSION_MARK
    }
    metadata |= {WINDOW_MARKER: True, SESSION: True}
    return StructField(field.name, field.dataType, field.nullable, metadata)


def _micros(times: pa.Array) -> Times:
    micros: Times = (
        times.cast(pa.timestamp("us", tz=times.type.tz))
        .cast(pa.int64())
        .to_numpy(zero_copy_only=False)
    )
    return micros.copy()
