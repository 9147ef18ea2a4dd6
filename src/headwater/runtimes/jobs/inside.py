"""Spark steps in the runtime's own process, on a session that is there already."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from headwater.runtimes.jobs.call import called
from headwater.runtimes.jobs.preparing import conforming, given
from headwater.runtimes.jobs.process import Ended

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.runtimes.jobs.ledger import Task


class Thread:
    """A try of a Spark step in a thread; its Spark jobs are one group, which can be cancelled."""

    def __init__(self, task: Task, session: Callable[[], Any]) -> None:
        self.rows: list[Any] = []
        self.error: Exception | None = None
        self._task, self._session = task, session
        self._group = f"{task.key}#{task.folder}"
        self._began = time.monotonic()
        self._worked = 0.0
        self._given_up = False
        self._thread = threading.Thread(target=self._work, name=self._group, daemon=True)
        self._thread.start()

    def ended(self) -> Ended | None:
        """How it ended; None while it runs."""
        if self._thread.is_alive() and not self._given_up:
            return None
        return Ended(0 if self.error is None and not self._given_up else 1, self._worked)

    def kill(self, grace: float) -> None:
        """Cancel its Spark jobs; a thread that goes on all the same is left alone."""
        self._session().sparkContext.cancelJobGroup(self._group)
        self._given_up = True

    def leave(self) -> None:
        """It can't be found again: it is cancelled."""
        self.kill(0.0)

    def _work(self) -> None:
        task = self._task
        try:
            session = self._session()
            session.sparkContext.setJobGroup(self._group, task.step.shown, True)
            assert task.step.spark is not None
            made = called(
                task.step.spark, given(task), bool(task.step.after), task.parameters, session
            )
            self.rows = [dict(row) for row in made]
            conforming(task, self.rows)
        except Exception as error:  # noqa: BLE001 - the user's function may raise anything
            self.error = error
        finally:
            self._worked = time.monotonic() - self._began
