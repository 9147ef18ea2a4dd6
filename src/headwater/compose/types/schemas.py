"""Schemas as Spark writes them, read without Spark: names, types, and what lies inside a struct."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from headwater.compose.violations import nearest

INTEGERS = "tinyint byte smallint short int integer bigint long".split()
NUMBERS = [*INTEGERS, *"float real double decimal dec numeric".split()]
TEXTS = "string varchar char".split()
TIMES = "timestamp timestamp_ltz timestamp_ntz date time".split()
_OTHERS = "boolean binary interval void variant geometry geography".split()
_KNOWN = frozenset([*NUMBERS, *TEXTS, *TIMES, *_OTHERS, "array", "map", "struct"])

_WORD = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([\w]+)|('(?:[^'\\]|\\.)*')|([<>(),:]))")


class SchemaError(ValueError):
    """A text that is no schema."""


@dataclass(frozen=True, slots=True)
class Type:
    """A type: its name, and the parts that an array, a map or a struct has."""

    name: str
    parts: tuple[tuple[str, Type], ...] = ()

    @property
    def family(self) -> str:
        """What bindings call it: INTEGER, NUMBER, STRING, BOOLEAN or TIMESTAMP; else ANY."""
        families = (("INTEGER", INTEGERS), ("NUMBER", NUMBERS), ("STRING", TEXTS))
        for family, names in (*families, ("TIMESTAMP", TIMES)):
            if self.name in names:
                return family
        return "BOOLEAN" if self.name == "boolean" else "ANY"

    def part(self, name: str) -> Type | None:
        """The type of a struct's field, or of the field of an array's elements."""
        if self.name == "array":
            return self.parts[0][1].part(name)
        if self.name == "map":
            return self.parts[1][1]
        return dict(self.parts).get(name) if self.name == "struct" else None

    def __str__(self) -> str:
        inner = ",".join(
            str(t) if self.name != "struct" else f"{name}:{t}" for name, t in self.parts
        )
        return f"{self.name}<{inner}>" if self.parts else self.name


@lru_cache(maxsize=10_000)
def parse(text: str) -> Type:
    """The schema of `scan bigint, at timestamp` as a struct; raises `SchemaError`.

    >>> str(parse("scan bigint, dbz array<double>"))
    'struct<scan:bigint,dbz:array<double>>'
    """
    reader = _Reader(text)
    fields = reader.fields(end=None)
    names = [name.casefold() for name, _ in fields]
    for at, name in enumerate(names):
        if name in names[:at]:
            raise SchemaError(f"has two columns {fields[at][0]!r}")
    return Type("struct", fields)


class _Reader:
    """Words of a schema, one after another."""

    def __init__(self, text: str) -> None:
        self._words: list[tuple[str, bool]] = []
        at = 0
        text = text.rstrip()
        while at < len(text):
            found = _WORD.match(text, at)
            if found is None:
                raise SchemaError(f"has {text[at:].strip()[:10]!r}, which no schema has")
            quoted = found[1]
            word = quoted.replace("``", "`") if quoted is not None else found[0].strip()
            self._words.append((word, quoted is not None))
            at = found.end()
        self._at = 0

    def fields(self, end: str | None) -> tuple[tuple[str, Type], ...]:
        """Names with types, up to a closing sign or the end of the text."""
        found: list[tuple[str, Type]] = []
        while True:
            name = self._name()
            self._skip(":")
            found.append((name, self._type()))
            self._decoration()
            if self._skip(","):
                continue
            if end is None and self._at < len(self._words):
                raise SchemaError(f"has {self._words[self._at][0]!r} where a comma should be")
            if end is not None:
                self._expect(end)
            return tuple(found)

    def _type(self) -> Type:
        name = self._name().casefold()
        if name not in _KNOWN:
            raise SchemaError(f"has no type {name!r}{nearest(name, sorted(_KNOWN))}")
        if name == "struct":
            self._expect("<")
            return Type(name, () if self._skip(">") else self.fields(end=">"))
        if name in ("array", "map"):
            self._expect("<")
            parts = [("key" if name == "map" else "element", self._type())]
            if name == "map":
                self._expect(",")
                parts.append(("value", self._type()))
            self._expect(">")
            return Type(name, tuple(parts))
        if self._skip("("):
            while not self._skip(")"):
                self._name()
                self._skip(",")
        if name == "interval":
            while self._peek() not in (None, ",", ">"):
                self._at += 1
        return Type(name)

    def _decoration(self) -> None:
        """`NOT NULL` and `COMMENT '…'`, which say nothing about the type."""
        if (self._peek() or "").casefold() == "not":
            self._at += 1
            if self._name().casefold() != "null":
                raise SchemaError("has NOT without NULL")
        if (self._peek() or "").casefold() == "comment":
            self._at += 2

    def _peek(self) -> str | None:
        return self._words[self._at][0] if self._at < len(self._words) else None

    def _skip(self, sign: str) -> bool:
        found = self._peek() == sign
        self._at += found
        return found

    def _expect(self, sign: str) -> None:
        if not self._skip(sign):
            raise SchemaError(f"lacks a {sign!r} before {self._peek() or 'its end'!r}")

    def _name(self) -> str:
        if self._at >= len(self._words):
            raise SchemaError("ends where a name or a type should be")
        word, quoted = self._words[self._at]
        if not quoted and not re.match(r"\w", word):
            raise SchemaError(f"has {word!r} where a name or a type should be")
        self._at += 1
        return word
