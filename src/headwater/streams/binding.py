"""Bindings: a property of an event by its path in the document that it comes in.

`lat := /radar/location/centerlat : NUMBER` says that `lat` is the number at that place. A path is
XPath for XML; for JSON and Avro it is JSONPath (`$.radar.location.lat`) or the same with slashes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast, get_args

import pyarrow as pa

from headwater.streams.errors import StreamError

if TYPE_CHECKING:
    from collections.abc import Iterable

Type = Literal["NUMBER", "INTEGER", "STRING", "BOOLEAN", "TIMESTAMP"]
TYPES: tuple[Type, ...] = get_args(Type)

ARROW: dict[Type, pa.DataType] = {
    "NUMBER": pa.float64(),
    "INTEGER": pa.int64(),
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
}

_FORM = re.compile(r"\s*([^\s:=]+)\s*:=\s*(.*\S)\s*:\s*(\w+)\s*", re.DOTALL)
_EXAMPLE = "lat := /radar/location/centerlat : NUMBER"


@dataclass(frozen=True, slots=True)
class Binding:
    """A property: its name, its path and its type."""

    name: str
    path: str
    type: Type

    def __str__(self) -> str:
        return f"{self.name} := {self.path} : {self.type}"

    @property
    def arrow(self) -> pa.DataType:
        """The type of its column."""
        return ARROW[self.type]


def parse(text: str) -> Binding:
    """Read a binding as it is written.

    >>> parse("lat := /radar/location/centerlat : NUMBER")
    Binding(name='lat', path='/radar/location/centerlat', type='NUMBER')
    >>> parse("cells := count(/scan/r:cell):integer").path
    'count(/scan/r:cell)'
    """
    found = _FORM.fullmatch(text)
    if found is None:
        raise StreamError(f"{text!r} is not a binding; write for instance '{_EXAMPLE}'")
    name, path, kind = found[1], found[2].rstrip(), found[3].upper()
    if not name.isidentifier():
        raise StreamError(f"{name!r} in the binding {text!r} is not a name of letters and digits")
    if kind not in TYPES:
        raise StreamError(
            f"type {found[3]!r} in the binding {text!r} is none of {', '.join(TYPES)}"
        )
    return Binding(name, path, cast("Type", kind))


def schema(bindings: Iterable[Binding]) -> pa.Schema:
    """The schema of events that have just these properties."""
    given = list(bindings)
    names = [binding.name for binding in given]
    for name in names:
        if names.count(name) > 1:
            raise StreamError(f"{name!r} is bound twice")
    return pa.schema([(binding.name, binding.arrow) for binding in given])
