"""Rates and lengths of time as people type them: `5/s`, `300/min`, `200ms`, `2 minutes`."""

from __future__ import annotations

import re

from headwater.compose.durations import microseconds
from headwater.errors import FlowError

_UNITS = {
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "m": 60.0,
    "min": 60.0,
    "minute": 60.0,
    "h": 3_600.0,
    "hour": 3_600.0,
    "d": 86_400.0,
    "day": 86_400.0,
}
_NUMBER = r"(\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+)"


def per_second(text: str) -> float:
    """A rate in events a second.

    >>> per_second("5/s"), per_second("300/min"), per_second("0.5")
    (5.0, 5.0, 0.5)
    """
    found = re.fullmatch(rf"\s*{_NUMBER}\s*(?:/\s*(\w+))?\s*", text.lower())
    unit = _UNITS.get(found[2] or "s") if found else None
    if found is None or unit is None:
        raise FlowError(f"{text!r} is not a rate: write it as 5/s, 300/min or 20/h")
    return float(found[1]) / unit


def seconds(given: str | float) -> float:
    """A length of time in seconds.

    >>> seconds("200ms"), seconds("1.5 h"), seconds("2 minutes 30 seconds"), seconds(3)
    (0.2, 5400.0, 150.0, 3.0)
    """
    if not isinstance(given, str):
        return float(given)
    found = re.fullmatch(rf"\s*{_NUMBER}\s*([a-zµ]*)\s*", given.lower())
    unit = _UNITS.get(found[2] or "s") if found else None
    if found is not None and unit is not None:
        return float(found[1]) * unit
    length = microseconds(given)
    if length is None:
        raise FlowError(f"{given!r} is not a length of time: write it as 200ms, 3s or '2 minutes'")
    return length / 1e6
