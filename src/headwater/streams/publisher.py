"""A publisher: takes single events, and publishes them in batches."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from headwater.streams.conforming import as_rows_or_table
from headwater.streams.errors import SchemaClash, StreamError
from headwater.streams.letters import Letter, shown
from headwater.streams.sifting import sift

if TYPE_CHECKING:
    import pyarrow as pa

    from headwater.streams.conforming import Events, Row
    from headwater.streams.declaration import Producer
    from headwater.streams.grouping import Group
    from headwater.streams.letters import Letters

SIZE = 10_000
LINGER = 0.05


class Publisher:
    """Publishes events as they come; use it in a `with`, at whose end all are safe.

    A batch is published when it has `size` events or its first is `linger` seconds old. Threads may
    share a publisher, and several publishers of a process share files. An event that does not fit
    the schema becomes a dead letter, counted in `rejected`; the others go on.
    """

    def __init__(
        self,
        group: Group,
        schema: pa.Schema,
        letters: Letters,
        producer: Producer,
        *,
        size: int = SIZE,
        linger: float = LINGER,
    ) -> None:
        if size < 1 or linger < 0:
            raise StreamError(f"size={size} and linger={linger}: give 1 or more, and 0 or more")
        self.published = 0
        """Events that are safe."""
        self.rejected = 0
        """Events that became dead letters."""
        self._group, self._schema, self._letters = group, schema, letters
        self._producer, self._size, self._linger = producer, size, linger
        self._changed = threading.Condition()
        self._rows: list[Row] = []
        self._since = 0.0
        self._asked = self._writing = self._closed = False
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._work, name="headwater-publisher", daemon=True)
        self._thread.start()

    def send(self, event: Row) -> None:
        """Give an event to be published; waits only when too many do."""
        with self._changed:
            self._require_open()
            rows = self._rows
            if not rows:
                self._since = time.monotonic()
                self._changed.notify_all()
            rows.append(event)
            if len(rows) >= self._size:
                self._changed.notify_all()
                while len(self._rows) >= self._size and self._error is None:
                    self._changed.wait()

    def send_many(self, events: Events) -> None:
        """Give many events at once: rows, Arrow or pandas."""
        given = as_rows_or_table(events)
        if isinstance(given, list):
            for event in given:
                self.send(event)
            return
        self.flush()  # keeps the order
        receipt = self._group.append(given, self._producer)
        with self._changed:
            self.published += receipt.events

    def flush(self) -> None:
        """Publish what was given so far; it is safe when this returns."""
        with self._changed:
            self._asked = True
            self._changed.notify_all()
            while (self._rows or self._writing) and self._error is None:
                self._changed.wait()
            self._asked = False
            self._raise()

    def close(self) -> None:
        """Publish all that was given, and end."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        with self._changed:
            self._raise()

    def __enter__(self) -> Publisher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _work(self) -> None:
        while rows := self._next():
            try:
                self._publish(rows)
            except Exception as error:  # noqa: BLE001 - raised where events are given
                with self._changed:
                    self._error, self._writing = error, False
                    self._changed.notify_all()
                return
            with self._changed:
                self._writing = False
                self._changed.notify_all()

    def _next(self) -> list[Row]:
        """Wait for a batch; none when the publisher is closed and empty."""
        with self._changed:
            while True:
                if self._rows:
                    left = self._since + self._linger - time.monotonic()
                    urgent = self._closed or self._asked or left <= 0
                    if urgent or len(self._rows) >= self._size:
                        rows, self._rows = self._rows, []
                        self._writing = True
                        self._changed.notify_all()
                        return rows
                    self._changed.wait(left)
                elif self._closed:
                    return []
                else:
                    self._changed.wait()

    def _publish(self, rows: list[Row]) -> None:
        try:
            receipt = self._group.append(rows, self._producer)
            self.published += receipt.events
        except SchemaClash:
            table, reasons = sift(rows, self._schema)
            letters = [
                Letter(reason, "publisher", shown(rows[place])) for place, reason in reasons.items()
            ]
            self._letters.write(letters)
            self.rejected += len(letters)
            receipt = self._group.append(table, self._producer)
            self.published += receipt.events

    def _require_open(self) -> None:
        self._raise()
        if self._closed:
            raise StreamError("the publisher is closed; events are given in its `with`")

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error
