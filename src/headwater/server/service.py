"""`Service`: what the routes work on, flows, streams and the store, in one process."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from headwater.errors import RunError, StoreError
from headwater.query import Store
from headwater.server.board import Board
from headwater.server.counting import Counts
from headwater.server.reductions import Reductions
from headwater.server.working import Work
from headwater.store import open as open_store
from headwater.store.database import database_path
from headwater.store.lake.place import is_lake
from headwater.store.reader import StoreReader
from headwater.streams.declaration import Producer

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.deploy.host import Host
    from headwater.server.settings import Settings
    from headwater.streams import Streams

PRODUCER = Producer("rest", "program")
"""Who publishes what comes by REST."""


class Service:
    """Flows, streams and the store behind the API.

    With a host it runs flows; without one it shows what is there, and what others run.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        streams: Streams,
        flows: Path,
        store: Path,
        host: Host | None = None,
    ) -> None:
        self.settings = settings
        self.streams, self.flows, self.path, self._host = streams, flows, store, host
        self.started = time.time()
        self.counts = Counts()
        self.work = Work(settings.limits)
        self.ending = threading.Event()
        """Set when the service is about to end: what is followed then ends too."""
        self.board = Board(self)
        self.reductions = Reductions(self)
        self._opened: Store | None = None
        self._replays: Store | None = None
        self._opening = threading.Lock()

    @property
    def runs(self) -> bool:
        """Whether it runs flows itself."""
        return self._host is not None

    @property
    def host(self) -> Host:
        """What runs the flows."""
        if self._host is None:
            raise RunError(
                "this service only shows (--no-run); `headwater serve` without it runs flows, and "
                "`headwater replay` and `headwater why-not` compute without a service"
            )
        return self._host

    @property
    def store(self) -> Store:
        """The store, for queries."""
        with self._opening:
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    @property
    def replays(self) -> Store:
        """The store, for what needs Spark: one thread at a time asks it."""
        with self._opening:
            if self._replays is None:
                self._replays = self._open()
            return self._replays

    def _open(self) -> Store:
        if is_lake(self.path):
            return open_store(self.path)
        if not database_path(self.path).is_file():
            raise StoreError(f"there is no store at {self.path} yet: no flow has run")
        return Store(StoreReader(self.path))

    def health(self) -> dict[str, Any]:
        """How it is, in a few words."""
        flows = self.board.flows()
        states = [each["state"] for each in flows]
        counted = {
            "running": sum(state not in ("stopped", "failed") for state in states),
            "stopped": states.count("stopped"),
            "failed": states.count("failed"),
        }
        trouble = self._host.trouble if self._host is not None else None
        fine = not counted["failed"] and trouble is None
        return {"status": "ok" if fine else "degraded", "flows": counted, "trouble": trouble}

    def close(self) -> None:
        """Let go of everything but the host, which is not its own."""
        self.ending.set()
        self.reductions.close()
        self.work.close()
        for store in (self._opened, self._replays):
            if store is not None:
                store.close()
