"""A store for other processes while this one owns it: Arrow Flight on loopback.

The address and a random token stand in `serving.json`, which only the owner's user can read; every
call must bring the token. A read runs one SELECT in a read-only transaction; the only writes are
the changes of `store/marks.py`.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
from pyarrow import flight

from headwater import errors
from headwater.errors import HeadwaterError, StoreError
from headwater.store import marks, timing
from headwater.store.schema import SERVING
from headwater.store.select import Closed, QueryFailed, require_time, select

if TYPE_CHECKING:
    from pathlib import Path

Cursor = Callable[[], duckdb.DuckDBPyConnection]
Apply = Callable[[marks.Change], int]
CHANGE = "change"


class Gone(Exception):
    """The process that `serving.json` names does not serve this store (any more)."""


class _Tokens(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Refuses every call that does not bring the token."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}"

    def start_call(self, info: Any, headers: dict[str, list[str]]) -> None:
        given = (headers.get("authorization") or [""])[0]
        if not hmac.compare_digest(given.encode(), self._expected.encode()):
            raise flight.FlightUnauthenticatedError("wrong token")


class _Server(flight.FlightServerBase):  # type: ignore[misc]
    """Answers a ticket, one SELECT with its parameters, with the rows."""

    def __init__(self, cursor: Cursor, apply: Apply, token: str) -> None:
        super().__init__("grpc+tcp://127.0.0.1:0", middleware={"token": _Tokens(token)})
        self._cursor = cursor
        self._apply = apply

    def forget(self) -> None:
        """Drop the database: Arrow keeps the server itself until the process ends."""
        del self._cursor, self._apply

    def do_get(self, context: Any, ticket: Any) -> Any:
        sql, params = _unpacked(ticket.ticket)
        try:
            table = select(self._cursor(), sql, params)
        except (Closed, AttributeError, duckdb.ConnectionException) as error:
            raise flight.FlightUnavailableError("the store is closed") from error
        except QueryFailed as error:
            raise flight.FlightServerError("query failed", str(error).encode()) from error
        return flight.RecordBatchStream(table)

    def do_action(self, context: Any, action: Any) -> list[bytes]:
        """Makes a change, and answers with its number."""
        if action.type != CHANGE:
            raise flight.FlightServerError(f"no such action: {action.type}")
        apply: Apply | None = getattr(self, "_apply", None)
        try:
            if apply is None:
                raise Closed
            return [str(apply(marks.unpacked(action.body.to_pybytes()))).encode()]
        except Closed as error:
            raise flight.FlightUnavailableError("the store is closed") from error
        except HeadwaterError as error:
            told = json.dumps([type(error).__name__, str(error)])
            raise flight.FlightServerError("refused", told.encode()) from error


class Serving:
    """A running server and its `serving.json`."""

    def __init__(self, note: Path, server: _Server) -> None:
        self._note = note
        self._server = server

    @classmethod
    def start(cls, store: Path, cursor: Cursor, apply: Apply) -> Serving:
        """Serve the store's database and say where."""
        token = secrets.token_urlsafe(32)
        server = _Server(cursor, apply, token)
        note = store / SERVING
        fresh = store / f"{SERVING}.{os.getpid()}"
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            address = {"location": f"grpc+tcp://127.0.0.1:{server.port}", "token": token}
            json.dump({"pid": os.getpid(), **address}, file)
        fresh.replace(note)
        return cls(note, server)

    def stop(self) -> None:
        """Stop serving and take the note away."""
        with contextlib.suppress(OSError):
            self._note.unlink()
        self._server.shutdown()
        self._server.forget()


class FlightReader:
    """Reads a store, and changes it, through the process that owns it."""

    def __init__(self, store: Path) -> None:
        try:
            note = json.loads((store / SERVING).read_text())
            self._client = flight.FlightClient(note["location"])
            bearer = f"Bearer {note['token']}".encode()
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:
            raise Gone from error
        self._headers = [(b"authorization", bearer)]
        self._options = flight.FlightCallOptions(headers=self._headers)

    def query(self, sql: str, params: Sequence[object] = ()) -> pa.Table:
        """The rows of one SELECT."""
        require_time()
        try:
            ticket = flight.Ticket(_packed(sql, params))
            return self._client.do_get(ticket, self._timed()).read_all()
        except flight.FlightTimedOutError as error:
            require_time()
            raise Gone from error
        except (flight.FlightUnavailableError, flight.FlightUnauthenticatedError) as error:
            raise Gone from error
        except flight.FlightServerError as error:
            if error.extra_info:
                raise QueryFailed(error.extra_info.decode()) from error
            raise StoreError(f"the owner of the store can't answer: {error}") from error

    def _timed(self) -> flight.FlightCallOptions:
        left = timing.left()
        if left is None:
            return self._options
        return flight.FlightCallOptions(timeout=left, headers=self._headers)

    def apply(self, change: marks.Change) -> int:
        """Have the owner make a change; what it answers, or the error that it raises."""
        try:
            action = flight.Action(CHANGE, marks.packed(change))
            (answer,) = self._client.do_action(action, self._options)
            return int(answer.body.to_pybytes())
        except (flight.FlightUnavailableError, flight.FlightUnauthenticatedError) as error:
            raise Gone from error
        except flight.FlightServerError as error:
            if error.extra_info:
                name, message = json.loads(error.extra_info)
                kind: type[HeadwaterError] = vars(errors).get(name, StoreError)
                raise kind(message) from error
            raise StoreError(f"the owner of the store can't answer: {error}") from error

    def close(self) -> None:
        """End the connection."""
        self._client.close()


def _packed(sql: str, params: Sequence[object]) -> bytes:
    # Arrow keeps the types of the parameters (times, lists of ids), JSON would not.
    row = pa.table({f"p{i}": pa.array([value]) for i, value in enumerate(params)})
    row = row.replace_schema_metadata({"sql": sql})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, row.schema) as stream:
        stream.write_table(row)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _unpacked(ticket: bytes) -> tuple[str, list[object]]:
    row = pa.ipc.open_stream(ticket).read_all()
    sql = row.schema.metadata[b"sql"].decode()
    return sql, [column[0].as_py() for column in row.columns]
