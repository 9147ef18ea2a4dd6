"""Whether more may come of a record: read from its label, or from its time and the watermark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.flow.reach import OWN_BATCH
from headwater.query import records
from headwater.store.among import among
from headwater.store.batch import ID
from headwater.store.batch import TIME as STORED_TIME
from headwater.times import NO_TIME

if TYPE_CHECKING:
    from headwater.query.edges import Edges
    from headwater.query.live import LiveFlow
    from headwater.store.catalog import Source
    from headwater.store.reader import Reader

Ids = npt.NDArray[np.int64]


def final(found: Edges, source: Source, ids: Ids) -> dict[int, bool | None]:
    """By record: whether it can reach no more; None where that is not known."""
    if not source.is_stream:
        return dict.fromkeys(ids.tolist(), True)
    flow, reader = found.live_flow(source.flow), found.reader
    if flow is None or source.name not in flow.described:
        return dict.fromkeys(ids.tolist(), None)
    if flow.finished:
        return dict.fromkeys(ids.tolist(), True)
    known = dict.fromkeys(_in(reader, "vertices", source, ids), False)
    known |= dict.fromkeys(_in(reader, "labels", source, ids), True)
    answer: dict[int, bool | None] = {**dict.fromkeys(ids.tolist()), **known}
    rest = np.array([i for i in ids.tolist() if i not in known], np.int64)
    if len(rest):
        answer |= _idle(reader, source, flow, rest)
    return answer


def _in(reader: Reader, table: str, source: Source, ids: Ids) -> list[int]:
    match, params = among(ids)
    sql = f"SELECT id FROM {table} WHERE source_no = {source.no} AND id {match}"
    rows = reader.query(sql, params)
    return list(rows["id"].to_pylist())


def _idle(reader: Reader, source: Source, flow: LiveFlow, ids: Ids) -> dict[int, bool | None]:
    """Of records without a result: whether their reach is past.

    A step that holds no rows gives a record's results in the batch that reads it: there the time
    alone does not tell, unless the store keeps records and so knows that this one has been read.
    """
    reach = flow.reach(source.name)
    watermark = flow.watermark(reader)
    own = records.found(reader, source, ids)
    times = own[STORED_TIME].cast(pa.int64()).fill_null(NO_TIME).to_numpy()
    until = reach.until(times) if flow.expiry == "tight" else reach.as_ananke(times)
    past = until <= (OWN_BATCH if watermark is None else watermark)
    unsure = bool(reach.sessions) or (not source.kept and reach.hands_on_at_once)
    found: list[int] = own[ID].to_pylist()
    return {
        id_: None if unsure and done else bool(done)
        for id_, done in zip(found, past.tolist(), strict=True)
    }
