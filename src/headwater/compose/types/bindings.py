"""Properties of events bound by path: `lat := /radar/location/centerlat : NUMBER`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from headwater.compose.frozen import Table
from headwater.compose.types.paths import Path, PathError, path
from headwater.compose.values import Value, Wrong, shown
from headwater.streams import binding

TYPES = (*binding.TYPES, "ANY")
"""Those of a stream's own bindings, and ANY, for a part that only has to be there."""
_LINE = re.compile(r"^\s*([A-Za-z_]\w*)\s*:=\s*(.+?)\s*$", re.DOTALL)
_TYPED = re.compile(r"^(.*\S)\s*:\s*([A-Za-z]+)\s*$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Property:
    """What a name means in an event: the path to it, and its type."""

    name: str
    text: str
    type: str = "ANY"

    @property
    def path(self) -> Path:
        """The path, read."""
        return path(self.text)

    def __str__(self) -> str:
        return f"{self.name} := {self.text} : {self.type}"


def parse(line: str) -> Property:
    """A property from its line; raises `Wrong`.

    >>> print(parse("lat := /radar/location/centerlat :NUMBER"))
    lat := /radar/location/centerlat : NUMBER
    """
    found = _LINE.match(line)
    if found is None:
        raise Wrong(f"has the line {line!r}; write 'name := path : TYPE'")
    return _bound(found[1], found[2])


def _bound(name: str, text: str) -> Property:
    typed = _TYPED.match(text)
    # An XPath may have colons of its own: only one of the types ends it.
    if typed and (typed[2].upper() in TYPES or (typed[2].isupper() and len(typed[2]) > 2)):
        return _checked(name, typed[1], typed[2].upper())
    return _checked(name, text.strip(), "ANY")


def _checked(name: Any, text: Any, kind: Any) -> Property:
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise Wrong(f"names {shown(name)}, which can't be a column; write a name such as 'lat'")
    if not isinstance(text, str):
        raise Wrong(f"of {name!r} has the path {shown(text)}, which is not text")
    if not isinstance(kind, str) or kind.upper() not in TYPES:
        raise Wrong(f"of {name!r} has the type {kind}; types are {', '.join(TYPES)}")
    try:
        path(text)
    except PathError as error:
        raise Wrong(f"of {name!r}: {error}") from error
    return Property(name, text.strip(), kind.upper())


@dataclass(frozen=True, slots=True)
class Bindings(Value):
    """Properties: lines, or `{name: {path: …, type: …}}`, or `{name: "path : TYPE"}`."""

    name: ClassVar[str] = "properties"

    def read(self, given: Any) -> Table[Property]:
        """Refuse lines without a path, unknown types and names given twice."""
        if isinstance(given, str):
            given = [line for line in given.splitlines() if line.strip()]
        if isinstance(given, Mapping):
            return Table({name: self._of(name, value) for name, value in given.items()})
        if not isinstance(given, list | tuple):
            raise Wrong(f"is lines such as 'lat := /radar/lat : NUMBER', not {shown(given)}")
        found: dict[str, Property] = {}
        for line in given:
            bound = parse(line) if isinstance(line, str) else self._foreign(line)
            if bound.name in found:
                raise Wrong(f"binds {bound.name!r} twice")
            found[bound.name] = bound
        return Table(found)

    def write(self, value: Any) -> Any:
        """As lines, which are the shorter form."""
        return [str(bound) for bound in value.values()]

    def schema(self) -> dict[str, Any]:
        """Lines, or names with paths."""
        line = {"type": "string", "pattern": ":="}
        whole = {
            "type": "object",
            "required": ["path"],
            "additionalProperties": False,
            "properties": {
                "path": {"type": "string", "minLength": 1},
                "type": {"enum": [*TYPES, *(t.lower() for t in TYPES)]},
            },
        }
        named = {"anyOf": [{"type": "string", "minLength": 1}, whole]}
        return {
            "anyOf": [
                line,
                {"type": "array", "items": line},
                {"type": "object", "additionalProperties": named},
            ]
        }

    def _of(self, name: Any, value: Any) -> Property:
        if isinstance(value, Property):
            return value
        if isinstance(value, str):
            return _bound(name, value)
        if isinstance(value, Mapping) and "path" in value and set(value) <= {"path", "type"}:
            return _checked(name, value["path"], value.get("type", "ANY"))
        raise Wrong(f"of {name!r} is {{path: …, type: …}}, not {shown(value)}")

    def _foreign(self, line: Any) -> Property:
        if isinstance(line, Property):
            return line
        raise Wrong(f"has the line {shown(line)}; write 'name := path : TYPE'")
