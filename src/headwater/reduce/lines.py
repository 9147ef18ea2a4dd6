"""Lines one by one: for each that is not plainly right, what can be taken of it, and why not all.

>>> from headwater.reduce.gathered import Gathered
>>> gathered = Gathered("count")
>>> read_line(b'{"type": "used", "activity": 5', 0, gathered)
>>> gathered.rejected[0].reason
"not JSON: Expecting ',' delimiter at column 31"
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from headwater.reduce.documents import gather, is_document
from headwater.reduce.elements import DEFAULTS, GROUP, Twice
from headwater.reduce.told import FIELDS

if TYPE_CHECKING:
    from headwater.reduce.gathered import Gathered

_KNOWN = frozenset((*FIELDS, *DEFAULTS, GROUP, "type", "output"))


def read_line(line: bytes, where: int, gathered: Gathered) -> None:
    """Takes a line: an element, a group or a whole document; blank lines are nothing."""
    try:
        text = line.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        shown = line.decode("utf-8", "replace")
        gathered.reject(where, shown, f"not UTF-8: {error.reason} at byte {error.start + 1:,}")
        return
    if not text:
        return
    try:
        value = json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        gathered.reject(where, text, f"not JSON: {error.msg} at column {error.colno:,}")
    except (RecursionError, ValueError) as error:
        gathered.reject(where, text, f"not JSON that can be read: {error}")
    else:
        if isinstance(value, dict) and is_document(value):
            gather(text, gathered, where)
        elif isinstance(value, dict):
            gathered.line(where, value, text)
        else:
            gathered.element(where, value, text=text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; it is marked if a field that matters is there twice."""
    made = dict(pairs)
    if len(made) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = [name for name, count in counts.items() if count > 1 and name in _KNOWN]
        return Twice(made, twice[0]) if twice else made
    return made
