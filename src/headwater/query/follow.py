"""Following a store as batches are committed: changes of the graph, and standing queries."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.errors import HeadwaterError
from headwater.query import graph as graphs
from headwater.query.results import ask, view
from headwater.service.calls import Failed, Final, TimedOut
from headwater.service.posting import as_json, send
from headwater.store.batch import SEQ

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from headwater.query.predicate import Selection
    from headwater.store.catalog import Sink
    from headwater.store.reader import Reader

POLL = 0.1
"""Seconds between two looks for a new batch."""
_ATTEMPTS = 5
_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class GraphChange:
    """What one batch added to the live graph; `position` is where to go on after it."""

    position: int
    flow: str
    batch: int
    watermark: datetime | None
    vertices: pa.Table
    edges: pa.Table
    labels: pa.Table


@dataclass(frozen=True, slots=True)
class Match:
    """A result that a standing query asked for, with the source records that it came from."""

    position: int
    sink: str
    result: dict[str, Any]
    records: pa.Table

    @property
    def result_id(self) -> int:
        """The result's id."""
        return int(self.result["result_id"])

    def to_dict(self) -> dict[str, Any]:
        """The match as plain values."""
        return {
            "position": self.position,
            "sink": self.sink,
            "result": self.result,
            "records": self.records.to_pylist(),
        }

    def to_json(self) -> str:
        """The match as one line of JSON."""
        return as_json(self.to_dict())


@dataclass(frozen=True, slots=True)
class Committed:
    """A batch that was committed."""

    position: int
    flow: str
    batch: int
    watermark: datetime | None


def batches(
    reader: Reader,
    flows: Sequence[str],
    after: int,
    *,
    wait: bool,
    timeout: float | None,
) -> Iterator[Committed]:
    """The batches of some flows after a position, as they are committed.

    It ends when all the flows are finished, when nothing came for `timeout` seconds, or, without
    `wait`, with the batches that are there.
    """
    named = ", ".join("?" for _ in flows)
    quiet_since = time.monotonic()
    position = after
    while True:
        # Read before the batches: what a finished flow has committed is then among them.
        running = reader.query(
            f"SELECT count(*) AS n FROM flows WHERE flow IN ({named}) AND NOT finished", list(flows)
        )["n"][0].as_py()
        rows = reader.query(
            "SELECT b.seq AS position, f.flow, b.batch, b.watermark FROM batches b "
            f"JOIN flows f USING (query_id) WHERE b.seq > {position} AND f.flow IN ({named}) "
            "ORDER BY b.seq",
            list(flows),
        )
        for row in rows.to_pylist():
            position = row["position"]
            yield Committed(**row)
        if rows.num_rows:
            quiet_since = time.monotonic()
            continue
        if not wait or not running:
            return
        if timeout is not None and time.monotonic() - quiet_since >= timeout:
            return
        time.sleep(POLL)


def changes(found: graphs.Parts, committed: Iterator[Committed]) -> Iterator[GraphChange]:
    """What each batch added to the graph."""
    for one in committed:
        added = graphs.between(found, one.position - 1, one.position)
        yield GraphChange(
            one.position,
            one.flow,
            one.batch,
            one.watermark,
            added.vertices,
            added.edges,
            added.labels,
        )


def matches(
    reader: Reader,
    sink: Sink,
    selection: Selection,
    committed: Iterator[Committed],
    backward: Callable[[list[int]], pa.Table],
    holding: Callable[[list[int]], set[int]] | None = None,
) -> Iterator[Match]:
    """The results of each batch that a condition selects, each with its records.

    `holding` narrows them down to some: those that hold a marked record.
    """
    condition, params = selection.sql()
    for one in committed:
        rows = ask(
            reader,
            f"SELECT * EXCLUDE ({SEQ}) FROM {view(sink)} WHERE {SEQ} = {one.position} "
            f"AND {condition} ORDER BY result_id",
            params,
            selection,
        ).to_pylist()
        if rows and holding is not None:
            held = holding([row["result_id"] for row in rows])
            rows = [row for row in rows if row["result_id"] in held]
        if not rows:
            continue
        found = backward([row["result_id"] for row in rows])
        for row in rows:
            mine = found.filter(pa.compute.equal(found["result_id"], row["result_id"]))
            yield Match(one.position, sink.name, row, mine.drop_columns(["result_id"]))


def delivered(found: Iterator[Match], to: str) -> Iterator[Match]:
    """The matches, each once it has been handed to a webhook or to a stream in a directory."""
    hand = _webhook(to) if to.startswith(("http://", "https://")) else _stream(Path(to))
    for match in found:
        hand(match)
        yield match


def _webhook(url: str) -> Callable[[Match], None]:
    """POSTs a match; one that is not taken is tried again, with longer and longer pauses."""

    def hand(match: Match) -> None:
        for attempt in range(_ATTEMPTS):
            try:
                # Any answer will do: what is sent is a notice.
                send(url, match.to_dict(), _TIMEOUT)
            except Final as error:
                raise HeadwaterError(
                    f"webhook {url} refused result {match.result_id}: {error}"
                ) from error
            except (Failed, TimedOut) as error:
                if attempt == _ATTEMPTS - 1:
                    raise HeadwaterError(
                        f"webhook {url} did not take result {match.result_id} in {_ATTEMPTS} "
                        f"attempts ({str(error) or 'no answer in time'}); go on later with "
                        f"after={match.position - 1}"
                    ) from error
                time.sleep(0.2 * 2**attempt)
            else:
                return

    return hand


def _stream(folder: Path) -> Callable[[Match], None]:
    """Writes each match as a Parquet file, named by position and result, whole or not at all."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HeadwaterError(f"{folder} can't be a stream's directory: {error.strerror}") from error

    def hand(match: Match) -> None:
        table = pa.table(
            {
                "position": [match.position],
                "sink": [match.sink],
                "result_id": [match.result_id],
                "result": [as_json(match.result)],
                "records": [as_json({"records": match.records.to_pylist()})],
            }
        )
        name = f"{match.position:012}-{match.result_id & (1 << 64) - 1:016x}.parquet"
        temporary = folder / f".{name}.tmp"
        pq.write_table(table, temporary)
        os.replace(temporary, folder / name)

    return hand
