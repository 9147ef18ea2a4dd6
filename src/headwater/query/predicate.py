"""What a query selects results by: ids, an SQL predicate, a span of event time."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import duckdb

from headwater.errors import PredicateError

Time = datetime | date | str

_parser = duckdb.connect()
_parser_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Selection:
    """Conditions on results, all of which hold; `ids=None` is any id."""

    ids: tuple[int, ...] | None = None
    where: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @classmethod
    def of(
        cls,
        ids: tuple[int, ...] | None,
        where: str | None,
        since: Time | None,
        until: Time | None,
    ) -> Selection:
        """A checked selection from what the user gave."""
        if where is not None:
            _check(where)
        return cls(ids, where, _time("since", since), _time("until", until))

    @property
    def filters(self) -> bool:
        """Whether it can leave out a result that has an asked id."""
        return not (self.where is None and self.since is None and self.until is None)

    def sql(self) -> tuple[str, list[object]]:
        """An SQL condition over `result_id`, `event_time` and own columns, and its parameters."""
        parts, params = ["true"], list[object]()
        if self.ids is not None and len(self.ids) == 1:
            parts.append("result_id = ?")
            params.append(self.ids[0])
        elif self.ids is not None:
            parts.append("result_id IN (SELECT unnest(?::BIGINT[]))")
            params.append(list(self.ids))
        if self.since is not None:
            parts.append("event_time >= ?")
            params.append(self.since)
        if self.until is not None:
            parts.append("event_time < ?")
            params.append(self.until)
        if self.where is not None:
            # The line break ends a comment at the predicate's end.
            parts.append(f"({self.where}\n)")
        return " AND ".join(parts), params


def _check(where: str) -> None:
    """Refuse what is more than one predicate, so that it can only ever filter rows."""
    parsed(where)


def parsed(where: str) -> dict[str, Any]:
    """A predicate as DuckDB reads it; raises `PredicateError` where it is none, or more than one.

    Read both as it stands and between the parentheses that it is put in: `a) or (b` would
    otherwise undo what stands before it.
    """
    found: dict[str, Any] = {}
    for text in (f"SELECT 1 WHERE {where}\n", f"SELECT 1 WHERE ({where}\n)"):
        statements = [statement["node"] for statement in _statements(where, text)]
        alone = len(statements) == 1 and statements[0]["type"] == "SELECT_NODE"
        if not alone or any(
            statements[0][part]
            for part in ("modifiers", "group_expressions", "having", "qualify", "sample")
        ):
            raise PredicateError(f"where={where!r} is more than one SQL predicate")
        found = statements[0]["where_clause"]
    return found


def _statements(where: str, text: str) -> list[dict[str, Any]]:
    try:
        with _parser_lock:
            rows = _parser.execute("SELECT json_serialize_sql(?)", [text]).fetchall()
        told: dict[str, Any] = json.loads(rows[0][0])
    except (duckdb.Error, RecursionError, UnicodeError) as error:
        raise PredicateError(f"where={where!r} is not an SQL predicate, or too deep") from error
    if told["error"]:
        reason = " ".join(str(told.get("error_message", "not SQL")).split())
        raise PredicateError(f"where={where!r} is not an SQL predicate: {reason}")
    statements: list[dict[str, Any]] = told["statements"]
    return statements


def _time(name: str, given: Time | None) -> datetime | None:
    return None if given is None else moment(given, name)


def moment(given: Time, name: str) -> datetime:
    """A time as the user gave it, in UTC where it does not say."""
    if isinstance(given, str):
        try:
            given = datetime.fromisoformat(given)
        except ValueError as error:
            raise PredicateError(
                f"{name}={given!r} is not a time; give a datetime or ISO text, "
                "such as 2024-05-01T12:00:00Z"
            ) from error
    if not isinstance(given, datetime):
        given = datetime(given.year, given.month, given.day, tzinfo=UTC)
    # Times of a store are UTC, and so is one that does not say.
    return given.replace(tzinfo=UTC) if given.tzinfo is None else given
