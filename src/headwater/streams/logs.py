"""The kinds of logs: which one a declaration names, and positions in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from headwater.streams.errors import StreamError
from headwater.streams.parquet import ParquetLog
from headwater.streams.positions import Position

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.streams.declaration import Declaration
    from headwater.streams.log import Log

Where: TypeAlias = "Position | int | str"
"""What says a position."""


def open_log(folder: Path, declared: Declaration) -> Log:
    """The log that a declaration names; for `kafka:TOPIC` this is where another would be made."""
    if declared.log == "parquet":
        return ParquetLog(folder, declared)
    raise StreamError(
        f"log={declared.log!r} of stream {declared.name!r} is not supported; use 'parquet'"
    )


def within(log: Log, name: str, given: Where) -> Position:
    """A position that is in the log, or at its end."""
    position = Position.of(given)
    start, end = log.bounds()
    if not start <= position <= end:
        raise StreamError(
            f"position {position} is not in stream {name!r}, which has {start} to {end}"
        )
    return position
