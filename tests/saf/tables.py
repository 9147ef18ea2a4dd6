"""Tables of events as text, and as rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def parsed(text: str) -> list[tuple[Any, ...]]:
    """The rows of a text table of numbers; `-` is nothing."""
    lines = (line.split() for line in text.splitlines() if line.strip())
    return [tuple(_value(word) for word in words) for words in lines]


def _value(word: str) -> Any:
    if word == "-":
        return None
    return float(word) if "." in word else int(word)


def as_table(text: str, *names: str) -> pa.Table:
    """A text table with names for its columns."""
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in parsed(text)])


def keys(text: str) -> pa.Table:
    """A text table of keys: timestamp, seqno, stream_id, delay."""
    return as_table(text, "timestamp", "seqno", "stream_id", "delay")


def events(text: str, *contents: Any) -> pa.Table:
    """Keys, and contents for the first of them."""
    table = keys(text)
    rest = [None] * (table.num_rows - len(contents))
    return table.append_column("event_content", pa.array([*contents, *rest]))


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of an Arrow table as tuples."""
    return [tuple(row.values()) for row in table.to_pylist()]
