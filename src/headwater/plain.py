"""Values of records and results in plain terms, as JSON can say them."""

from __future__ import annotations

import base64
import json
import math
from datetime import date, datetime, time
from typing import Any


def plain(value: Any) -> Any:
    """A value as JSON can say it: exact integers, ISO times, text for what JSON lacks.

    >>> from datetime import UTC
    >>> plain({"n": 2**60, "at": datetime(2025, 1, 1, tzinfo=UTC), "x": float("nan")})
    {'n': 1152921504606846976, 'at': '2025-01-01T00:00:00Z', 'x': 'NaN'}
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else json.dumps(value)
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date() | time():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() if value and all(isinstance(item, tuple) for item in value):  # Arrow's map
            return {str(plain(key)): plain(item) for key, item in value}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return str(value)
