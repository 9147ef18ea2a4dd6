"""Values between the command line and the store: ids and times in, text and JSON out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import typer

from headwater.plain import plain


def parse_id(text: str) -> Any:
    """An id as typed: a number, or the source's own value; JSON says what would be unclear.

    >>> parse_id("-42"), parse_id("bus-7"), parse_id('"42"'), parse_id('["bus", 7]')
    (-42, 'bus-7', '42', ('bus', 7))
    """
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    if text.startswith("-"):
        # Negative ids must pass for arguments, so unknown options arrive here too.
        raise typer.BadParameter(f"no such option: {text}")
    if text.startswith(('"', "[")):
        try:
            value = json.loads(text)
        except ValueError as error:
            raise typer.BadParameter(f"{text} is not JSON: {error}") from error
        return tuple(value) if isinstance(value, list) else value
    return text


def parse_ids(texts: list[str]) -> Any:
    """One id alone, or several as a list: the two forms that the store's queries take."""
    ids = [parse_id(text) for text in texts]
    return ids[0] if len(ids) == 1 else ids


def parse_time(text: str | None) -> datetime | None:
    """A time in ISO 8601, UTC unless it says otherwise.

    >>> parse_time("2025-01-01T00:30")
    datetime.datetime(2025, 1, 1, 0, 30, tzinfo=datetime.timezone.utc)
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r} is not a time: write it as 2025-01-01T00:30:00Z"
        ) from error
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def parse_option(text: str) -> tuple[str, str]:
    """An option of a format or a log, as typed.

    >>> parse_option("path=a=b")
    ('path', 'a=b')
    """
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise typer.BadParameter(f"{text!r} is not of the form KEY=VALUE", param_hint="--option")
    return key, value


def json_rows(table: Any) -> Iterator[str]:
    """An Arrow table as one JSON array, a row a line, without ever holding all of it as text."""
    yield "["
    separator = "\n"
    for batch in table.to_batches(max_chunksize=1_000):
        for row in batch.to_pylist():
            yield separator + json.dumps(plain(row), ensure_ascii=False)
            separator = ",\n"
    yield "\n]\n" if table.num_rows else "]\n"


def text(value: Any) -> str:
    """A value as a table shows it.

    >>> text({"start": datetime(2025, 1, 1, 0, 1), "end": datetime(2025, 1, 1, 0, 3)})
    '2025-01-01 00:01:00 – 00:03:00'
    """
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case str():
            # A line break, or worse, a terminal's control sequence, must not leave its cell.
            return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in value)
        case datetime():
            return value.replace(tzinfo=None).isoformat(sep=" ")
        case {"start": datetime() as start, "end": datetime() as end} if len(value) == 2:
            same_day = start.date() == end.date()
            return f"{text(start)} – {text(end).split(' ')[1] if same_day else text(end)}"
        case dict() | list():
            return json.dumps(plain(value), ensure_ascii=False)
        case Decimal() | timedelta():
            return str(value)
        case _:
            return str(plain(value))
