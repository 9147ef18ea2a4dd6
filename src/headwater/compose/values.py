"""The types of a node's values: each reads what a file says, writes it again, and has a schema."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from headwater.compose.durations import DURATION, microseconds
from headwater.compose.frozen import Table, frozen, thawed


class Wrong(ValueError):
    """A value of the wrong type: the text says what was expected."""


class Value:
    """A type of values in flow files."""

    name: ClassVar[str]
    """What the docs call it."""

    def read(self, given: Any) -> Any:
        """The value, unchangeable; raises `Wrong`."""
        raise NotImplementedError

    def write(self, value: Any) -> Any:
        """The value as YAML and JSON have it."""
        return thawed(value)

    def schema(self) -> dict[str, Any]:
        """Its JSON schema."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Text(Value):
    """A text; `what` says of what."""

    what: str = "text"
    pattern: str | None = None
    example: str | None = None
    name: ClassVar[str] = "text"

    def read(self, given: Any) -> str:
        """Refuse what is not text, empty, or against the pattern."""
        if not isinstance(given, str):
            raise Wrong(f"is {self.what}, not {shown(given)}")
        if not given.strip() or (self.pattern and not re.fullmatch(self.pattern, given)):
            like = f" such as {self.example!r}" if self.example else ""
            raise Wrong(f"is {self.what}{like}, not {given!r}")
        return given

    def schema(self) -> dict[str, Any]:
        """With the pattern, so that editors say it too."""
        return {"type": "string", "minLength": 1} | (
            {"pattern": self.pattern} if self.pattern else {}
        )


@dataclass(frozen=True, slots=True)
class Whole(Value):
    """A whole number."""

    least: int = 0
    name: ClassVar[str] = "whole number"

    def read(self, given: Any) -> int:
        """Refuse fractions, and what is too small."""
        if not isinstance(given, int) or isinstance(given, bool) or given < self.least:
            raise Wrong(f"is a whole number, {self.least} at least, not {shown(given)}")
        return given

    def schema(self) -> dict[str, Any]:
        """An integer with its minimum."""
        return {"type": "integer", "minimum": self.least}


@dataclass(frozen=True, slots=True)
class Number(Value):
    """A number above zero, or from zero on."""

    zero: bool = False
    name: ClassVar[str] = "number"

    def read(self, given: Any) -> float:
        """Refuse what is no number, infinite or too small."""
        fits = isinstance(given, int | float) and not isinstance(given, bool)
        if not fits or not math.isfinite(given) or given < 0 or (given == 0 and not self.zero):
            least = "0 at least" if self.zero else "above 0"
            raise Wrong(f"is a number, {least}, not {shown(given)}")
        return float(given) if isinstance(given, float) else given

    def schema(self) -> dict[str, Any]:
        """A number with its bound."""
        return {"type": "number", "minimum" if self.zero else "exclusiveMinimum": 0}


@dataclass(frozen=True, slots=True)
class Flag(Value):
    """True or false."""

    name: ClassVar[str] = "true or false"

    def read(self, given: Any) -> bool:
        """Refuse `yes` and 1 alike."""
        if not isinstance(given, bool):
            raise Wrong(f"is true or false, not {shown(given)}")
        return given

    def schema(self) -> dict[str, Any]:
        """A boolean."""
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Choice(Value):
    """One of a few words."""

    options: tuple[str, ...]
    name: ClassVar[str] = "one of a few words"

    def read(self, given: Any) -> str:
        """Refuse any other word."""
        if not isinstance(given, str) or given not in self.options:
            raise Wrong(f"is one of {', '.join(self.options)}, not {shown(given)}")
        return given

    def schema(self) -> dict[str, Any]:
        """An enumeration."""
        return {"enum": list(self.options)}


@dataclass(frozen=True, slots=True)
class Duration(Value):
    """A length of time in words; in seconds too where `seconds`."""

    seconds: bool = False
    zero: bool = False
    name: ClassVar[str] = "length of time"

    def read(self, given: Any) -> str | float:
        """Refuse what Spark could not read either."""
        if self.seconds and not isinstance(given, str):
            return Number(zero=self.zero).read(given)
        length = microseconds(given) if isinstance(given, str) else None
        if length is None or (length == 0 and not self.zero):
            raise Wrong(f"is a length of time such as '10 minutes', not {shown(given)}")
        return str(given)

    def schema(self) -> dict[str, Any]:
        """A text of numbers and units."""
        text = {"type": "string", "pattern": DURATION}
        return {"anyOf": [text, Number(zero=self.zero).schema()]} if self.seconds else text


@dataclass(frozen=True, slots=True)
class Names(Value):
    """A list of texts; one alone may stand without brackets."""

    of: Value = Text("a name")
    name: ClassVar[str] = "list of names"

    def read(self, given: Any) -> tuple[Any, ...]:
        """Refuse a name given twice."""
        items = given if isinstance(given, list | tuple) else [given]
        read = tuple(self.of.read(item) for item in items)
        doubled = [item for at, item in enumerate(read) if item in read[:at]]
        if doubled:
            raise Wrong(f"names {doubled[0]!r} twice")
        return read

    def write(self, value: Any) -> Any:
        """One alone without brackets."""
        return thawed(value[0] if len(value) == 1 else value)

    def schema(self) -> dict[str, Any]:
        """One or a list."""
        one = self.of.schema()
        return {"anyOf": [one, {"type": "array", "items": one, "uniqueItems": True}]}


@dataclass(frozen=True, slots=True)
class Pairs(Value):
    """Names with a value each."""

    of: Value
    what: str = "names with values"
    name: ClassVar[str] = "names with values"

    def read(self, given: Any) -> Table[Any]:
        """Refuse what is no mapping; a wrong value is told with its name."""
        if not isinstance(given, Mapping):
            raise Wrong(f"is {self.what}, {{name: value}}, not {shown(given)}")
        read = {}
        for name, value in given.items():
            if not isinstance(name, str):
                raise Wrong(f"has the name {name!r}, which is not text; put it in quotes")
            try:
                read[name] = self.of.read(value)
            except Wrong as error:
                raise Wrong(f"of {name!r} {error}") from error
        return Table(read)

    def write(self, value: Any) -> Any:
        """Each value as its own type writes it."""
        return {name: self.of.write(item) for name, item in value.items()}

    def schema(self) -> dict[str, Any]:
        """An object of any names."""
        return {"type": "object", "additionalProperties": self.of.schema()}


@dataclass(frozen=True, slots=True)
class Plain(Value):
    """Anything that JSON can say."""

    name: ClassVar[str] = "anything"

    def read(self, given: Any) -> Any:
        """Refuse what YAML and JSON can't say again."""
        refuse_foreign(given)
        return frozen(given)

    def schema(self) -> dict[str, Any]:
        """Everything is allowed."""
        return {}


@dataclass(frozen=True, slots=True)
class Either(Value):
    """A value of one of several types: the first that can read it."""

    types: tuple[Value, ...]
    what: str
    name: ClassVar[str] = "one of several"

    def read(self, given: Any) -> Any:
        """Refuse what none of them reads; a mapping's own complaint is the telling one."""
        for kind in self.types:
            try:
                return kind.read(given)
            except Wrong as error:
                if isinstance(given, Mapping) and isinstance(kind, Pairs):
                    raise Wrong(str(error)) from error
        raise Wrong(f"is {self.what}, not {shown(given)}")

    def write(self, value: Any) -> Any:
        """As the first that can read it does."""
        for kind in self.types:
            try:
                kind.read(value)
            except Wrong:
                continue
            return kind.write(value)
        raise AssertionError(f"{value!r} was never read")

    def schema(self) -> dict[str, Any]:
        """Any of theirs."""
        return {"anyOf": [kind.schema() for kind in self.types]}


def refuse_foreign(given: Any) -> None:
    """Raise `Wrong` for a value that YAML and JSON can't say again."""
    match given:
        case None | bool() | int() | str():
            return
        case float() if math.isfinite(given):
            return
        case list() | tuple():
            for item in given:
                refuse_foreign(item)
        case Mapping():
            for name, item in given.items():
                if not isinstance(name, str):
                    raise Wrong(f"has the name {name!r}, which is not text; put it in quotes")
                refuse_foreign(item)
        case _:
            raise Wrong(f"is something that JSON can say, not {shown(given)}")


def shown(value: Any) -> str:
    """A value in a message: short."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
