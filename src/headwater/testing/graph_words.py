"""How a checker of live graphs names what it speaks of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from headwater.testing.evaluate import EPOCH
from headwater.testing.graph_reach import NEVER, UNSAID

if TYPE_CHECKING:
    from collections.abc import Iterable

Record = tuple[str, int]
"""A source's name and a record's id; or a sink's and a result's."""
Edge = tuple[str, int, str, int]


def named(record: Record, kind: str = "source") -> str:
    """A record or a result."""
    return f"{'record' if kind == 'source' else 'result'} {record[0]}:{record[1]}"


def edge_named(edge: Edge) -> str:
    """An edge."""
    return f"the edge {edge[0]}:{edge[1]} -> {edge[2]}:{edge[3]}"


def set_named(ids: Iterable[Record]) -> str:
    """A set of records."""
    return "{" + ", ".join(f"{source}:{id_}" for source, id_ in sorted(ids)) + "}"


def shown(time: datetime | None) -> str:
    """A time."""
    if time is None:
        return "no time"
    return f"{time:%Y-%m-%d %H:%M:%S.%f}".removesuffix("000").removesuffix(".000")


def reach_shown(reach: int) -> str:
    """A reach, in microseconds."""
    if reach <= -1:
        return "its own batch"
    if reach >= UNSAID:
        return "the end" if reach >= NEVER else "some time"
    return shown(EPOCH + timedelta(microseconds=reach))


def moment(watermark: int) -> datetime:
    """A watermark, in milliseconds, as a time."""
    return EPOCH + timedelta(milliseconds=watermark)


def ordered(watermark: datetime | None) -> datetime:
    """A watermark that can be compared."""
    return EPOCH if watermark is None else watermark


def utc(time: Any) -> Any:
    """A time in UTC; anything else as it is."""
    if isinstance(time, datetime):
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    return time
