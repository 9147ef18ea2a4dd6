"""Values as text that may stand in HTML and SVG. Whatever a record holds goes through `escaped`."""

from __future__ import annotations

import html
import re
from datetime import UTC, date, datetime
from typing import Any

# What XML can't hold, and what turns the direction of the text around it.
_ODD = re.compile(
    "[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
    "|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def escaped(text: object) -> str:
    """A text in HTML or SVG, between tags or in an attribute in quotes.

    >>> escaped("<b onclick='x'>&")
    '&lt;b onclick=&#x27;x&#x27;&gt;&amp;'
    """
    return html.escape(_ODD.sub("\ufffd", str(text)), quote=True)


def brief(text: str, longest: int) -> str:
    """A text on one line, cut where it is too long.

    >>> brief("a  long\\ntext", 8), brief("short", 8)
    ('a long …', 'short')
    """
    # A long one is cut first: only what can be shown is looked at.
    line = " ".join(text[: 4 * longest + 4].split())
    whole = len(text) <= 4 * longest + 4 and len(line) <= longest
    return line if whole else f"{line[: longest - 1]}…"


def said(value: Any) -> str:
    """A value of a column as people write it.

    >>> said(None), said(2.50), said(b"ab"), said([1, None])
    ('null', '2.5', '0x6162', '[1, null]')
    """
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case datetime():
            return moment(value)
        case date():
            return value.isoformat()
        case bytes():
            return f"0x{value[:64].hex()}{'…' if len(value) > 64 else ''}"
        case dict():
            inner = ", ".join(f"{key}: {said(one)}" for key, one in value.items())
            return f"{{{inner}}}"
        case list() | tuple():
            return f"[{', '.join(said(one) for one in value)}]"
    return str(value)


def moment(time: datetime) -> str:
    """A time, in UTC, no finer than it is.

    >>> moment(datetime(2025, 1, 1, 0, 34, 59, 500_000, tzinfo=UTC))
    '2025-01-01 00:34:59.5Z'
    """
    told = time.astimezone(UTC) if time.tzinfo is not None else time
    text = told.strftime("%Y-%m-%d %H:%M:%S")
    part = f".{told.microsecond:06}".rstrip("0").rstrip(".")
    return f"{text}{part}{'Z' if time.tzinfo is not None else ''}"


def number(count: int) -> str:
    """A count with its thousands apart."""
    return f"{count:,}"
