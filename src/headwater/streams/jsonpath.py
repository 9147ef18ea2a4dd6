"""Paths into JSON-like documents: the part of JSONPath that names a place, and counting.

`$.a.b`, `$['a b'][0]`, `$.a[*].b` (a list), `$..b` is not supported; `/a/b` is the same as `$.a.b`,
`/a/b[1]` counts from 1 as XPath does; `count(PATH)` is how many there are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

from headwater.streams.errors import StreamError

if TYPE_CHECKING:
    from collections.abc import Callable

Step: TypeAlias = "str | int | None"
"""A member's name, a place in a list, or None for every place."""

_COUNT = re.compile(r"\s*count\((.*)\)\s*")
_STEP = re.compile(
    r"""\.(?P<name>[^.\[\]'"*()\s]+)|\[(?P<place>-?\d+)\]|\[(?P<quote>['"])(?P<quoted>.*?)(?P=quote)\]"""
    r"""|(?P<all>\[\*\]|\.\*)"""
)
_SLASHED = re.compile(r"/(?P<name>[^/\[\]()@*\s]+)(?:\[(?P<place>\d+)\])?|/(?P<all>\*)")


def compiled(path: str) -> Callable[[Any], Any]:
    """What finds a path's value in a document; null where it has none.

    >>> find = compiled("$.radar.cells[*].dbz")
    >>> find({"radar": {"cells": [{"dbz": 40}, {}, {"dbz": 55}]}})
    [40, 55]
    >>> compiled("count($.radar.cells[*])")({"radar": {"cells": [1, 2]}})
    2
    >>> compiled("/radar/cells[1]")({"radar": {"cells": [7, 8]}})
    7
    """
    counted = _COUNT.fullmatch(path)
    steps = steps_of(counted[1] if counted else path)
    many = None in steps

    def find(document: Any) -> Any:
        found = _walk(document, steps)
        if counted:
            # A list at the end of a path is as many, like elements of one name in XML.
            if not many and len(found) == 1 and isinstance(found[0], list):
                return len(found[0])
            return len(found)
        if many:
            return found
        return found[0] if found else None

    return find


def _walk(document: Any, steps: list[Step]) -> list[Any]:
    here = [document]
    for step in steps:
        below: list[Any] = []
        for value in here:
            match step, value:
                case str(), dict() if step in value:
                    below.append(value[step])
                case int(), list() if -len(value) <= step < len(value):
                    below.append(value[step])
                case None, list():
                    below.extend(value)
                case None, dict():
                    below.extend(value.values())
        here = below
    return here


def steps_of(path: str) -> list[Step]:
    """The steps of a path that counts nothing; raises `StreamError`.

    >>> steps_of("$.storms[0].lat"), steps_of("/storms[1]/lat")
    (['storms', 0, 'lat'], ['storms', 0, 'lat'])
    """
    whole = path = path.strip()
    if path.startswith("/"):
        rest, form = path, _SLASHED
    elif path.startswith("$"):
        rest, form = path[1:], _STEP
    else:
        raise StreamError(f"path {whole!r} begins with neither $ (JSONPath) nor /")
    steps: list[Step] = []
    at = 0
    while at < len(rest):
        found = form.match(rest, at)
        if found is None:
            raise StreamError(
                f"path {whole!r} can't be read from {rest[at:]!r} on: names, places and * are known"
            )
        parts = found.groupdict()
        if parts.get("all"):
            steps.append(None)
        elif parts.get("quoted") is not None:
            steps.append(parts["quoted"])
        elif form is _STEP and parts["place"] is not None:
            steps.append(int(parts["place"]))
        else:
            steps.append(parts["name"])
            if form is _SLASHED and parts["place"] is not None:
                steps.append(int(parts["place"]) - 1)
        at = found.end()
    return steps
