"""The kinds of logs: which one a declaration names, and positions in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from headwater.streams import folders
from headwater.streams.declaration import load
from headwater.streams.errors import StreamError
from headwater.streams.files import locked
from headwater.streams.parquet import ParquetLog
from headwater.streams.positions import Position

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.streams.declaration import Declaration
    from headwater.streams.log import Log

Where: TypeAlias = "Position | int | str"
"""What says a position."""


def open_log(folder: Path, declared: Declaration) -> Log:
    """The log that a declaration names; refuses what is wrong with it."""
    if declared.log == "parquet":
        return ParquetLog(folder, declared)
    if _on_kafka(declared):
        from headwater.streams.kafka import KafkaLog

        return KafkaLog(folder, declared)
    raise StreamError(
        f"log={declared.log!r} of stream {declared.name!r} is neither 'parquet' nor 'kafka:TOPIC'"
    )


def make(registry: Path, made: Declaration) -> Declaration:
    """Make the folder of a stream, and before that what its log needs elsewhere."""
    open_log(registry / made.name, made)
    if not _on_kafka(made):
        folders.create(registry, made)
        return made
    from headwater.streams import kafka_topics

    registry.mkdir(parents=True, exist_ok=True)
    with locked(registry / ".kafka"):  # else who is second takes away the topic of who is first
        folders.require_new(registry, made.name)
        ready = kafka_topics.prepare(registry, made)
        try:
            folders.create(registry, ready)
        except BaseException:
            kafka_topics.discard(ready)
            raise
    return ready


def remove(folder: Path, *, force: bool) -> None:
    """Delete a stream, and what was made for its log elsewhere."""
    declared = load(folder)
    folders.remove(folder, force=force)
    if _on_kafka(declared):
        from headwater.streams import kafka_topics

        kafka_topics.discard(declared)


def within(log: Log, name: str, given: Where) -> Position:
    """A position that is in the log, or at its end."""
    position = Position.of(given)
    start, end = log.bounds()
    if not start <= position <= end:
        raise StreamError(
            f"position {position} is not in stream {name!r}, which has {start} to {end}"
        )
    return position


def _on_kafka(declared: Declaration) -> bool:
    return declared.log.startswith("kafka:")
