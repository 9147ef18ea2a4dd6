"""Paths into events: XPath for XML, a subset of JSONPath for JSON; their steps and their values."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from headwater.streams.errors import StreamError
from headwater.streams.jsonpath import compiled, steps_of

_XPATH_STEP = re.compile(r"/(@?[\w.-]+(?::[\w.-]+)?)((?:\[[^\]]*\])*)")
_COUNT = re.compile(r"^\s*count\s*\((.*)\)\s*$", re.DOTALL)


class PathError(ValueError):
    """A text that is no path."""


@dataclass(frozen=True, slots=True)
class Path:
    """A path: its language, its text, the names on the way where they can be read.

    >>> path("/radar/location/centerlat").steps, path("$.storms[0].lat").steps
    (('radar', 'location', 'centerlat'), ('storms', 'lat'))
    """

    language: Literal["xpath", "jsonpath"]
    text: str
    steps: tuple[str, ...] | None
    """None where the text is more than names one below the other: nothing is inferred then."""
    counts: bool = False
    """Whether the value is the number of what is found."""

    def within(self, other: Path) -> bool:
        """Whether this is the other one or a part of the way to it: valid if the other is."""
        if self.language != other.language or self.steps is None or other.steps is None:
            return False
        return self.steps == other.steps[: len(self.steps)]

    def find(self, event: str | bytes) -> Any:
        """What an event has there: a number, a text, a list of what was found, or None."""
        if self.language == "xpath" and (self.steps is None or not is_json(event)):
            return _find_xml(self.text, event)
        found = compiled(self.text)(json.loads(event))
        if "*" not in self.text or not isinstance(found, list):
            return found
        return None if not found else found[0] if len(found) == 1 else found


@lru_cache(maxsize=10_000)
def path(text: str) -> Path:
    """A path as written: JSONPath begins with `$`, anything else is XPath; raises `PathError`."""
    inner = _inner(text)
    counts = inner != text.strip()
    if inner.startswith("$"):
        return Path("jsonpath", text.strip(), _names(inner), counts)
    from lxml import etree

    try:
        etree.XPath(text)
    except etree.XPathSyntaxError as error:
        raise PathError(f"{text!r} is no XPath ({error}); JSONPath begins with $") from error
    found = list(_XPATH_STEP.finditer(inner))
    whole = "".join(step[0] for step in found) == inner.rstrip("/") and not inner.startswith("//")
    names = tuple(step[1].rpartition(":")[2] for step in found)
    return Path("xpath", text.strip(), names if whole and names else None, counts)


def is_json(event: str | bytes) -> bool:
    """Whether an event is an object of JSON: its names can be led to with slashes, too."""
    start = event[:100].decode(errors="replace") if isinstance(event, bytes) else event[:100]
    return start.lstrip().startswith("{")


def _inner(text: str) -> str:
    counted = _COUNT.match(text)
    return (counted[1] if counted else text).strip()


def _names(text: str) -> tuple[str, ...]:
    """The names on the way of a JSONPath."""
    try:
        return tuple(step for step in steps_of(text) if isinstance(step, str))
    except StreamError as error:
        raise PathError(f"{error}; write $.name, ['name'], [0] and [*]") from error


def _find_xml(text: str, event: str | bytes) -> Any:
    from lxml import etree

    raw = event.encode() if isinstance(event, str) else event
    # An event comes from anyone: no entities, no network.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
    found = etree.fromstring(raw, parser).xpath(text)
    if not isinstance(found, list):
        return found
    values = [item if isinstance(item, str) else _text(item) for item in found]
    return None if not values else values[0] if len(values) == 1 else values


def _text(element: Any) -> str:
    return "".join(element.itertext()).strip()
