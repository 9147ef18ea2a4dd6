"""Lengths of time as a flow file writes them, read without Spark."""

from __future__ import annotations

import re

_MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)\s*")

DURATION = rf"^\s*(interval\s+)?(\d+(\.\d+)?\s*({'|'.join(_MICROSECONDS)})s?\s*)+$"
"""The same as a pattern, for the JSON schema."""


def seconds(value: str | float) -> float:
    """Seconds of a value that a `Duration` has read: a text, or seconds already.

    >>> seconds("2 minutes"), seconds(0.5)
    (120.0, 0.5)
    """
    return (microseconds(value) or 0) / 1e6 if isinstance(value, str) else float(value)


def microseconds(text: str) -> int | None:
    """The length of `10 minutes` or `1 hour 30 minutes`; None where it is no length of time.

    >>> microseconds("1 minute 30 seconds"), microseconds("10 minuets"), microseconds("")
    (90000000, None, None)
    """
    rest = text.strip().lower()
    rest = re.sub(r"^interval\s+", "", rest)
    total, at = 0.0, 0
    for part in _PART.finditer(rest):
        size = _MICROSECONDS.get(part[2].removesuffix("s"))
        if size is None or part.start() != at:
            return None
        total += float(part[1]) * size
        at = part.end()
    return round(total) if rest and at == len(rest) else None
