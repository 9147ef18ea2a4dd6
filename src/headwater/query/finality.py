"""Whether more may come of a record: read from its label, or from its time and the watermark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.flow.reach import NO_TIME, OWN_BATCH, Reach
from headwater.query import records
from headwater.store.batch import ID
from headwater.store.batch import TIME as STORED_TIME

if TYPE_CHECKING:
    from headwater.store.catalog import Source
    from headwater.store.reader import Reader

Ids = npt.NDArray[np.int64]


def final(reader: Reader, source: Source, ids: Ids) -> dict[int, bool | None]:
    """By record: whether it can reach no more; None where that is not known."""
    if not source.is_stream:
        return dict.fromkeys(ids.tolist(), True)
    flow = reader.query(
        "SELECT finished, json_extract(definition, '$.live')::VARCHAR AS live, query_id "
        "FROM flows WHERE flow = ?",
        [source.flow],
    ).to_pylist()
    live: dict[str, Any] | None = json.loads(flow[0]["live"]) if flow and flow[0]["live"] else None
    if live is None or source.name not in live["reach"]:
        return dict.fromkeys(ids.tolist(), None)
    if flow[0]["finished"]:
        return dict.fromkeys(ids.tolist(), True)
    known = dict.fromkeys(_in(reader, "vertices", source, ids), False)
    known |= dict.fromkeys(_in(reader, "labels", source, ids), True)
    answer: dict[int, bool | None] = {**dict.fromkeys(ids.tolist()), **known}
    rest = np.array([i for i in ids.tolist() if i not in known], np.int64)
    if len(rest):
        answer |= _idle(reader, source, live, flow[0]["query_id"], rest)
    return answer


def _in(reader: Reader, table: str, source: Source, ids: Ids) -> list[int]:
    rows = reader.query(
        f"SELECT id FROM {table} WHERE source_no = {source.no} "
        "AND id IN (SELECT unnest(?::BIGINT[]))",
        [ids.tolist()],
    )
    return list(rows["id"].to_pylist())


def _idle(
    reader: Reader, source: Source, live: dict[str, Any], query_id: str, ids: Ids
) -> dict[int, bool | None]:
    """Of records without a result: whether their reach is past.

    A step that holds no rows gives a record's results in the batch that reads it: there the time
    alone does not tell, unless the store keeps records and so knows that this one has been read.
    """
    reach = Reach.from_json(live["reach"][source.name])
    watermark = reader.query(
        "SELECT epoch_us(max(watermark)) AS w FROM batches WHERE query_id = ?", [query_id]
    )["w"][0].as_py()
    own = records.found(reader, source, ids)
    times = own[STORED_TIME].cast(pa.int64()).fill_null(NO_TIME).to_numpy()
    until = reach.until(times) if live["expiry"] == "tight" else reach.as_ananke(times)
    past = until <= (OWN_BATCH if watermark is None else watermark)
    unsure = bool(reach.sessions) or (not source.kept and reach.hands_on_at_once)
    found: list[int] = own[ID].to_pylist()
    return {
        id_: None if unsure and done else bool(done)
        for id_, done in zip(found, past.tolist(), strict=True)
    }
