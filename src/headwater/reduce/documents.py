"""PROV-JSON documents: their statements as elements.

Names are taken as they are written, prefix and all: one job's `ex:e1` is another's `ex:e1`.
What PROV has no word for is told by attributes, of a relation or else of its activity:
`hw:function`, `hw:execution`, `hw:node`, `hw:output`, `hw:job`. The time is `prov:time`, else when
the activity started (of what it used) or ended (of what it generated).

>>> text = b'''{"activity": {"m1": {"hw:function": "map"}},
...             "used": {"_:u1": {"prov:activity": "m1", "prov:entity": "in-7"}}}'''
>>> parsed = parse_document(text, "count")
>>> sorted(parsed.names.to_pylist()), parsed.edges["function"].to_pylist(), parsed.filtered
(['in-7', 'm1'], ['map'], {'activity': 1})
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headwater.reduce.elements import EDGES, OTHERS, Rejected, micros
from headwater.reduce.gathered import Gathered
from headwater.reduce.told import Parsed, assembled, of_edges

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

SECTIONS = frozenset((*EDGES, *OTHERS)) - {"attribute"}
"""What a document may have, beside `prefix` and `bundle`."""

_NAMES = SECTIONS | {"prefix", "bundle"}
_BEGIN = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(\w+)"\s*:\s*\{')
_HEAD = 1 << 16
_TOLD = ("function", "execution", "node", "output", "job")
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def parse_document(text: bytes, job: str | None) -> Parsed:
    """What a document tells; one that is not whole JSON is rejected as a whole."""
    gathered = Gathered(job)
    try:
        gather(text.decode("utf-8-sig"), gathered)
    except UnicodeDecodeError as error:
        shown = text.decode("utf-8", "replace")
        gathered.reject(0, shown, f"not UTF-8: {error.reason} at byte {error.start:,}")
    return of_gathered(gathered)


def of_gathered(gathered: Gathered) -> Parsed:
    """What was read one by one, as columns."""
    parts = [of_edges(gathered.edges)] if gathered.edges else []
    return assembled(parts, gathered.rejected, gathered.filtered, gathered.ends)


def is_document(value: Mapping[str, Any]) -> bool:
    """Whether an object is a document rather than an element: its fields are sections."""
    return "type" not in value and any(
        name in _NAMES and isinstance(section, dict) for name, section in value.items()
    )


def holds_document(path: str | os.PathLike[str]) -> bool:
    """Whether a file is one document over several lines, rather than lines.

    Documents that take a line each are lines as well: `parse` reads them.
    """
    with open(path, "rb") as opened:
        begin = _BEGIN.match(opened.read(_HEAD))
        if begin is None or begin[1].decode() not in _NAMES:
            return False
        opened.seek(0)
        line = next((line for line in opened if line.strip()), b"")
    try:
        json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return True
    return False


def gather(text: str, gathered: Gathered, where: int | None = None) -> None:
    """Reads a document's statements; `where` is its row, or None to count its own lines."""
    document = _Document(text)
    try:
        document.read()
    except json.JSONDecodeError as error:
        at = error.lineno - 1 if where is None else where
        gathered.reject(at, text, f"not JSON: {error.msg} at column {error.colno:,}")
        return
    except RecursionError:
        gathered.reject(where or 0, text, "not JSON that can be read: nested too deeply")
        return
    lines = _Lines(text)
    for said in document.said:
        at = lines.of(said.at) if where is None else where
        if said.problem:
            gathered.reject(at, said.name, said.problem)
        elif said.section in EDGES:
            for element in _elements(said):
                defaults = document.defaults(said.section, element)
                gathered.element(at, element, defaults, f"{said.section} {said.name!r}: ")
        else:
            gathered.filtered[said.section] += 1


@dataclass(frozen=True, slots=True)
class _Said:
    """A statement: where in the text, of which section and name, and its attributes."""

    at: int
    section: str
    name: str
    attributes: Mapping[str, Any]
    problem: str = ""


@dataclass(slots=True)
class _Document:
    """The statements of a document, read one after the other so that each has its place."""

    text: str
    at: int = 0
    said: list[_Said] = field(default_factory=list)
    activities: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def read(self) -> None:
        """Reads all of the text."""
        self._sections(in_bundle=False)
        if self._next():
            raise json.JSONDecodeError("Extra data", self.text, self.at)

    def defaults(self, type: str, element: Mapping[str, Any]) -> dict[str, Any]:
        """What an edge's activity tells of it."""
        activity = element.get("activity")
        told = self.activities.get(activity) if isinstance(activity, str) else None
        if told is None or type not in ("used", "wasGeneratedBy"):
            return {}
        time = "startTime" if type == "used" else "endTime"
        return {**told, "time": told[time]}

    def _sections(self, in_bundle: bool) -> None:
        for section in self._members():
            begin = self.at
            opened = self._next() == "{"
            if section == "bundle" and opened and not in_bundle:
                for _ in self._members():
                    self._sections(in_bundle=True)
            elif section in SECTIONS and opened:
                for name in self._members():
                    self._statements(section, name)
            else:
                self._value()
                if section != "prefix":
                    self.said.append(_Said(begin, section, section, {}, _wrong(section, in_bundle)))

    def _statements(self, section: str, name: str) -> None:
        """A name may have one statement or a list of them."""
        begin = self.at
        value = self._value()
        for attributes in value if isinstance(value, list) else [value]:
            if not isinstance(attributes, dict):
                problem = f"{section} {name!r}: a statement is an object of attributes"
                self.said.append(_Said(begin, section, name, {}, problem))
                continue
            problem = self._activity(name, attributes) if section == "activity" else ""
            self.said.append(_Said(begin, section, name, attributes, problem))

    def _activity(self, name: str, attributes: Mapping[str, Any]) -> str:
        """Keeps what an activity tells of its edges; returns what is wrong with it."""
        told = {
            field: _text(attributes, f"hw:{field}") for field in ("function", "execution", "node")
        }
        try:
            times = {at: micros(plain(attributes.get(f"prov:{at}"))) for at in _TIMES}
        except Rejected as error:
            return f"activity {name!r}: {error}"
        self.activities[name] = {**told, **times}
        return ""

    def _members(self) -> Iterator[str]:
        """The names in an object; whoever asks reads the value before asking for the next."""
        self._expect("{")
        if self._next() == "}":
            self.at += 1
            return
        while True:
            if self._next() != '"':
                raise json.JSONDecodeError("Expecting a name in quotes", self.text, self.at)
            name = self._value()
            self._expect(":")
            yield name
            if self._next() != ",":
                break
            self.at += 1
        self._expect("}")

    def _next(self) -> str:
        """The next character that is not space; empty at the end."""
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.text[self.at : self.at + 1]

    def _expect(self, character: str) -> None:
        if self._next() != character:
            raise json.JSONDecodeError(f"Expecting {character!r}", self.text, self.at)
        self.at += 1

    def _value(self) -> Any:
        self._next()
        value, self.at = _DECODER.raw_decode(self.text, self.at)
        return value


_TIMES = ("startTime", "endTime")


@dataclass(slots=True)
class _Lines:
    """Which line a place in a text is on; asked for places in order."""

    text: str
    at: int = 0
    line: int = 0

    def of(self, place: int) -> int:
        self.line += self.text.count("\n", self.at, place)
        self.at = place
        return self.line


def _wrong(section: str, in_bundle: bool) -> str:
    if section == "bundle" and in_bundle:
        return "a bundle can't be in a bundle"
    if section in SECTIONS or section == "bundle":
        return f"section `{section}` is not an object"
    return f"section {section!r} is unknown"


def _elements(said: _Said) -> Iterator[dict[str, Any]]:
    """A relation as elements: a collection may have several members in one."""
    attributes = said.attributes
    element = {"type": said.section, "time": plain(attributes.get("prov:time"))}
    element |= {name: plain(attributes.get(f"hw:{name}")) for name in _TOLD}
    element["output"] = {"true": True, "false": False}.get(element["output"], element["output"])
    element |= {name: plain(attributes.get(f"prov:{name}")) for name in EDGES[said.section]}
    members = element.get("entity")
    if said.section == "hadMember" and isinstance(members, list):
        yield from ({**element, "entity": plain(member)} for member in members)
    else:
        yield element


def plain(value: Any) -> Any:
    """A value without its type or language; a list of one as that one.

    >>> plain({"$": "map", "type": "xsd:string"}), plain(["n3"])
    ('map', 'n3')
    """
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value.get("$", value) if isinstance(value, dict) else value


def _text(attributes: Mapping[str, Any], name: str) -> str | None:
    """An attribute of an activity; what is not text tells nothing of its edges."""
    value = plain(attributes.get(name))
    return value if isinstance(value, str) else None
