"""Values of Spark, of the store and of the interpreter in one form, so that they compare."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from headwater.testing import Struct


def plain(value: Any) -> Any:
    """A value without its origin: structs by position, times in UTC, floats to nine digits."""
    match value:
        case Struct(fields=fields):
            return tuple(plain(v) for _, v in fields)
        case dict():
            return tuple(plain(v) for v in value.values())
        case list() | tuple():
            return tuple(plain(v) for v in value)
        case datetime():
            return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
        case float():
            return float(f"{value:.9g}")
    return value


def shown(value: Any) -> str:
    """A value for people: times by minute and second."""
    match value:
        case datetime():
            return f"{value:%H:%M:%S.%f}".removesuffix(".000000")
        case tuple():
            return "(" + ", ".join(map(shown, value)) + ")"
    return repr(value)
