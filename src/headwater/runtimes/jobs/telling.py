"""Telling what came of executions: at least once each, under a name that makes it exactly once."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headwater.runtimes.jobs.events import Event, Execution, Output
from headwater.runtimes.jobs.states import State

if TYPE_CHECKING:
    import sqlite3

    from headwater.runtimes.jobs.queue import JobQueue

Finished = Callable[[Execution, list[Output]], None]
Failed = Callable[[Execution], None]
Line = Callable[[dict[str, Any]], None]

_AGAIN = 1.0
"""Seconds to wait after a callback that raised."""


class Teller:
    """Calls the callbacks from a thread of its own, in the order in which executions ended."""

    def __init__(
        self,
        queue: JobQueue,
        on_finished: Finished | None,
        on_failed: Failed | None,
        on_provenance: Line | None,
    ) -> None:
        self._queue = queue
        self._finished, self._failed, self._provenance = on_finished, on_failed, on_provenance
        self._wake = threading.Event()
        self._ending = False
        self._thread: threading.Thread | None = None
        self.trouble: str | None = None

    @property
    def idle(self) -> bool:
        """Whether all is told."""
        return self._queue.database.row("select 1 from tellings where told = 0 limit 1") is None

    def start(self) -> None:
        """Begin, with what was not told before."""
        self._ending = False
        self._thread = threading.Thread(target=self._loop, name="headwater-jobs-tell", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Look at once."""
        self._wake.set()

    def stop(self) -> None:
        """End, after trying to tell what is left."""
        self._ending = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def _loop(self) -> None:
        while True:
            ending = self._ending
            try:
                self._all()
                self.trouble = None
            except Exception as error:  # noqa: BLE001 - the user's callback; it is tried again
                self.trouble = f"a callback failed: {type(error).__name__}: {error}"
                self._wake.clear()
                if not ending:
                    self._wake.wait(_AGAIN)
            if ending:
                return
            self._wake.wait(0.2)
            self._wake.clear()

    def _all(self) -> None:
        while True:
            rows = self._queue.database.rows(
                "select t.number as telling, t.execution, t.generation, t.snapshot, t.provenance, "
                "e.key, e.version from tellings t join executions e on e.number = t.execution "
                "where t.told = 0 order by t.number limit 100"
            )
            if not rows:
                return
            for row in rows:
                self._tell(row)
                self._queue.database.run(
                    "update tellings set told = 1, provenance = null where number = ?",
                    row["telling"],
                )

    def _tell(self, row: sqlite3.Row) -> None:
        told = json.loads(row["snapshot"])
        job = self._queue.ledger.job(row["version"])
        execution = Execution(
            key=row["key"],
            flow=job.flow,
            node=job.node,
            version=job.version,
            generation=row["generation"],
            state=State(told["state"]),
            events=tuple(Event(*each) for each in told["events"]),
            parameters=told["parameters"],
            attempts=told["attempts"],
            reason=told["reason"],
            stderr=told["stderr"],
        )
        if execution.state == State.failed:
            if self._failed is not None:
                self._failed(execution)
            return
        if self._provenance is not None and row["provenance"] is not None:
            for line in json.loads(row["provenance"]):
                self._provenance(line)
        if self._finished is not None:
            self._finished(execution, self._queue.outputs(row["key"], row["generation"]))
