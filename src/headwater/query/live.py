"""The flows that keep a live graph, as the store knows them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from headwater.flow.reach import Reach

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.store.reader import Reader


@dataclass(frozen=True, slots=True)
class LiveFlow:
    """A flow with a live graph: how far the records of its sources reach, and by which rule."""

    query_id: str
    finished: bool
    expiry: str
    described: Mapping[str, Mapping[str, Any]]
    """By source: its reach, as plain data."""

    def reach(self, source: str) -> Reach:
        """How far the records of a source reach."""
        return Reach.from_json(self.described[source])

    def watermark(self, reader: Reader) -> int | None:
        """The watermark (µs) of its latest batch, if there is one."""
        found: int | None = reader.query(
            "SELECT epoch_us(max(watermark)) AS w FROM batches WHERE query_id = ?", [self.query_id]
        )["w"][0].as_py()
        return found


def live_flows(reader: Reader, flow: str | None = None) -> dict[str, LiveFlow]:
    """The flows that keep a live graph, by name; of one name, if it is given."""
    sql = "SELECT flow, query_id, finished, definition FROM flows"
    rows = reader.query(sql) if flow is None else reader.query(f"{sql} WHERE flow = ?", [flow])
    found = {}
    for row in rows.to_pylist():
        live = _live(row["definition"])
        if live is not None:
            found[row["flow"]] = LiveFlow(
                row["query_id"], row["finished"], live["expiry"], live["reach"]
            )
    return found


@lru_cache(maxsize=1_000)
def _live(definition: str) -> Mapping[str, Any] | None:
    """What a flow's definition says of its live graph."""
    told: Mapping[str, Any] | None = json.loads(definition).get("live")
    return told
