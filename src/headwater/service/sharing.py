"""Answers that all tasks on a host share, so that an event is called for once.

Spark runs the steps above a sink for each sink anew. Behind two sinks a service would be called
twice, and might answer differently. So the tasks of a query have a small database in the host's
temporary folder: who calls for an event claims it first, and the others wait for what comes of it.
"""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import time
from typing import TYPE_CHECKING
from uuid import uuid4

from headwater.service.calls import Outcome
from headwater.service.tokens import FOLDER, folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

MOST = 1_000_000
"""As many events are remembered; where one batch has more, the oldest are forgotten."""
FORGOTTEN = 24 * 3600
"""Seconds after which what a query left behind is removed by the next."""
PATIENCE = 60.0
"""Seconds to wait for the database."""

Claim = tuple[str, float]
"""Who calls for an event, and until when that holds."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS calls (
    number INTEGER PRIMARY KEY, batch INTEGER NOT NULL, step TEXT NOT NULL, event BLOB NOT NULL,
    owner TEXT NOT NULL, until REAL NOT NULL, attempts INTEGER, reason TEXT, answer BLOB,
    UNIQUE (batch, step, event)
)
"""


class Shared:
    """The calls of one step in one micro-batch, as all tasks of a query on this host see them."""

    def __init__(self, token: str, batch: int, step: str, lease: float) -> None:
        self._of = (batch, step)
        self._lease = lease
        self._owner = f"{os.getpid()} {socket.gethostname()} {uuid4().hex}"
        self._place = folder(token)
        try:
            self._connection = _open(self._place)
            self._forget(batch)
        except (OSError, sqlite3.Error) as error:
            raise RuntimeError(f"{self._where}: {error}") from error

    @property
    def _where(self) -> str:
        return f"service {self._of[1]!r}: can't share answers in {self._place}"

    def __enter__(self) -> Shared:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def look(self, events: Sequence[bytes]) -> tuple[dict[bytes, Outcome], list[bytes]]:
        """What has come of some events, and those that nobody calls for."""
        there, now = dict(self._rows(events)), time.time()
        known = {event: told for event, told in there.items() if isinstance(told, Outcome)}
        return known, [e for e in events if e not in there or _is_void(there[e], now)]

    def claim(self, events: Sequence[bytes]) -> list[bytes]:
        """Those of some events that are now this task's to call for.

        They are if nobody has claimed them, or if who did is gone or took too long.
        """
        if not events:
            return []
        self._do("BEGIN IMMEDIATE")
        try:
            _, mine = self.look(events)
            until = time.time() + self._lease
            for event in mine:
                self._do(
                    "INSERT INTO calls (batch, step, event, owner, until) VALUES (?, ?, ?, ?, ?) "
                    "ON CONFLICT (batch, step, event) "
                    "DO UPDATE SET owner = excluded.owner, until = excluded.until",
                    [*self._of, event, self._owner, until],
                )
            self._do(
                "DELETE FROM calls WHERE number <= (SELECT max(number) FROM calls) - ?", [MOST]
            )
            self._do("COMMIT")
        except BaseException:
            self._connection.rollback()
            raise
        return mine

    def tell(self, event: bytes, outcome: Outcome) -> Outcome:
        """Write down what came of an event; what counts is what was written down first."""
        values = [outcome.attempts, outcome.reason, outcome.answer]
        changed = self._do(
            "UPDATE calls SET attempts = ?, reason = ?, answer = ? "
            "WHERE batch = ? AND step = ? AND event = ? AND attempts IS NULL",
            [*values, *self._of, event],
        )
        if changed.rowcount:
            return outcome
        return self.look([event])[0].get(event, outcome)

    def _rows(self, events: Sequence[bytes]) -> Iterable[tuple[bytes, Outcome | Claim]]:
        marks = ", ".join("?" * len(events))
        rows = self._do(
            "SELECT event, owner, until, attempts, reason, answer FROM calls "
            f"WHERE batch = ? AND step = ? AND event IN ({marks})",
            [*self._of, *events],
        )
        for event, owner, until, attempts, reason, answer in rows.fetchall():
            done = Outcome(answer, reason, attempts) if attempts is not None else None
            yield event, done or (owner, until)

    def _forget(self, batch: int) -> None:
        """Drop the calls of earlier batches: they are over."""
        old = self._do("SELECT EXISTS (SELECT 1 FROM calls WHERE batch < ?)", [batch]).fetchone()
        if old[0]:
            self._do("DELETE FROM calls WHERE batch < ?", [batch])

    def _do(self, sql: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        try:
            return self._connection.execute(sql, values)
        except sqlite3.Error as error:
            raise RuntimeError(f"{self._where}: {error}") from error


def _open(place: Path) -> sqlite3.Connection:
    if not place.exists():
        _clear_away(place.parent)
    # Answers are nobody else's business.
    place.mkdir(mode=0o700, exist_ok=True)
    os.utime(place)
    connection = sqlite3.connect(place / "calls.db", timeout=PATIENCE, isolation_level=None)
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            # What is here is of no use after a crash of the host.
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(_SCHEMA)
            return connection
        except sqlite3.OperationalError:
            # Several tasks set it up at once: SQLite does not always wait for its own lock here.
            if time.monotonic() > deadline:
                connection.close()
                raise
            time.sleep(0.01)


def _clear_away(parent: Path) -> None:
    """Remove what queries left behind that are long over."""
    for left in parent.glob(f"{FOLDER}*"):
        try:
            if left.stat().st_mtime < time.time() - FORGOTTEN:
                shutil.rmtree(left, ignore_errors=True)
        except OSError:
            continue


def _is_void(claim: Outcome | Claim, now: float) -> bool:
    """Whether who claimed an event is gone, or took too long."""
    if isinstance(claim, Outcome):
        return False
    owner, until = claim
    pid, host, _ = owner.split(" ", 2)
    return until < now or (host == socket.gethostname() and not _is_alive(int(pid)))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
