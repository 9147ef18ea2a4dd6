"""Linear Road as it happens: reports published as time goes by, for as long as somebody looks.

The hour of traffic that the demo begins with is driven again and again, each time an hour later.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.examples.linear_road import INTERVAL, SCHEMA, SOURCE
from headwater.examples.stream import SECOND

if TYPE_CHECKING:
    from headwater.streams import Streams

FLOW = Path(__file__).with_name("linear_road.yaml")
"""The flow file: stopped vehicles and accidents from the stream `reports`."""
EVERY = 0.5
"""Seconds between two publications."""


class LiveTraffic:
    """Publishes the reports of a table, which begin and end an hour, over and over.

    >>> table = pa.table({"tid": [0, 1], "ts": pa.array([0, 30_000_000], pa.timestamp("us"))})
    >>> later(table, 3).to_pylist()[1]["tid"], later(table, 3).to_pylist()[1]["ts"].minute
    (7, 3)
    """

    def __init__(self, streams: Streams, reports: pa.Table, speed: float = 10.0) -> None:
        self._streams, self._reports, self._speed = streams, reports, speed
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self.published = 0
        self.error: str | None = None

    def declare(self) -> None:
        """Declare the stream, if it is not there."""
        if SOURCE not in self._streams:
            self._streams.create(SOURCE, SCHEMA, event_time="ts", id="tid")

    def first(self, pieces: int = 12) -> None:
        """Publish the first time round, at once; a piece that is there is not added again."""
        size = -(-self._reports.num_rows // pieces)
        for piece in range(pieces):
            rows = self._reports.slice(piece * size, size)
            if rows.num_rows:
                self._streams.publish(SOURCE, rows, key=("demo", piece), consent=True)

    def start(self) -> None:
        """Go on from where the stream ends, at so many times the speed of the clock."""
        self._thread = threading.Thread(target=self._drive, name="headwater-traffic", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Publish no more."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()

    def _drive(self) -> None:
        per_round = self._reports.num_rows
        done = self._done(per_round)
        seconds = pc.cast(self._reports["ts"], pa.int64()).to_numpy() // SECOND
        seconds = seconds - seconds[0]
        length = _length(seconds)
        begun = time.monotonic()
        start = (done // per_round) * length + int(seconds[done % per_round])
        while not self._ending.wait(EVERY):
            now = start + (time.monotonic() - begun) * self._speed
            round_, within = divmod(now, length)
            upto = int(round_) * per_round + int(np.searchsorted(seconds, within, side="right"))
            while done < upto and not self._ending.is_set():
                lap, place = divmod(done, per_round)
                size = min(upto - done, per_round - place)
                rows = later(self._reports, lap).slice(place, size)
                try:
                    self._streams.publish(SOURCE, rows, consent=True)
                except Exception as error:  # noqa: BLE001 - the service goes on without it
                    self.error = str(error)
                    return
                done += size
                self.published += size

    def _done(self, per_round: int) -> int:
        """How many reports the stream has; in a topic, where positions do not say, the first."""
        if self._streams.declaration(SOURCE).log.startswith("kafka:"):
            return per_round
        return int(self._streams.log(SOURCE).bounds()[1])


def later(reports: pa.Table, rounds: int) -> pa.Table:
    """The reports of another time round."""
    seconds = pc.cast(reports["ts"], pa.int64()).to_numpy()
    length = _length((seconds - seconds[0]) // SECOND) * SECOND
    times = pa.array(seconds + rounds * length).cast(reports["ts"].type)
    tids = pa.array(reports["tid"].to_numpy() + rounds * reports.num_rows)
    moved = reports.set_column(reports.column_names.index("ts"), "ts", times)
    return moved.set_column(reports.column_names.index("tid"), "tid", tids)


def _length(seconds: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
    """How long a time round is: whole steps of all vehicles."""
    return int(-(-(int(seconds[-1]) + 1) // INTERVAL) * INTERVAL)
