"""Which name was meant by one that is not there."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def guess(name: object, known: Sequence[str], before: str = "", after: str = "") -> str:
    """A question for a message, between what goes before and after it; nothing if none is close.

    >>> guess("wher", ["from", "where"], before="; ")
    "; did you mean 'where'?"
    >>> guess("x", ["from", "where"], before="; ")
    ''
    """
    close = get_close_matches(str(name), known, n=1)
    return f"{before}did you mean {close[0]!r}?{after}" if close else ""
