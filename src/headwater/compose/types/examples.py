"""The last event of a stream as an example: what it has at a property's path, and what it lacks."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from headwater.compose.types.facts import Fact
from headwater.compose.types.paths import is_json
from headwater.streams.jsonpath import compiled, steps_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.compose.types.bindings import Property
    from headwater.compose.types.paths import Path
    from headwater.compose.types.schemas import Type

Told = tuple[Literal["there", "open", "absent"], Any]
"""Whether an event has something at a path, and what; `open` where it leaves that open."""

_LONGEST = 160
"""Characters of an event in a reason."""
_COUNTED = re.compile(r"^\s*count\s*\((.*)\)\s*$", re.DOTALL)
_ROOT = re.compile(r"^(\s*(?:count\s*\()?\s*)/[^/]+(?=/)")


def by_example(bound: Property, event: str | bytes, made: Type | None) -> Fact:
    """Whether the last event has a property, and of its type."""
    path = bound.path
    try:
        state, found = look(path, event)
    except Exception as error:  # noqa: BLE001 - an event may be anything
        text = f"the last event can't be read: {' '.join(str(error).split())[:80]}"
        return Fact("unknown", "last event", text, made, path)
    if state == "open":
        text = f"the last event has no value at {path.text}"
        return Fact("unknown", "last event", text, made, path)
    if state == "absent":
        text = f"the last event has nothing at {path.text}: {brief(event)}"
        return Fact("invalid", "last event", text, made, path)
    shown = str(found)[:40]
    if not _is(found, bound.type):
        text = f"the last event has {shown!r} there, which is no {bound.type}: {brief(event)}"
        return Fact("invalid", "last event", text, made, path)
    return Fact("valid", "last event", f"the last event has {shown!r} there", made, path)


def look(path: Path, event: str | bytes) -> Told:
    """What an event has at a path, in the event itself or in a document that it carries."""
    if path.language == "xpath" and not is_json(event):
        return _found(path.find(event))
    document = json.loads(event)
    told = [_in_json(text, document) for text in _as_json_paths(path)]
    if path.language == "xpath":
        told += [_found(path.find(inner)) for inner in _documents(document)]
        if None in document.values():
            told.append(("open", None))  # a column that is null may hold the document otherwise
    if not told:
        raise ValueError(f"{path.text} leads through XML, and it is JSON")
    return min(told, key=lambda each: ("there", "open", "absent").index(each[0]))


def columns_of(event: str | bytes | None) -> list[str]:
    """The names that the last event has, where it is an object of JSON."""
    try:
        told = json.loads(event) if event is not None else None
    except ValueError:
        return []
    return [str(name) for name in told] if isinstance(told, dict) else []


def brief(event: str | bytes) -> str:
    """An event in a line, its long texts and arrays cut short.

    >>> brief('{"station": "KIND", "dbz": [1, 2, 3, 4, 5]}')
    '{"station": "KIND", "dbz": [1, 2, 3, "… 2 more"]}'
    """
    text = event.decode(errors="replace") if isinstance(event, bytes) else event
    try:
        text = json.dumps(_cut(json.loads(text)), ensure_ascii=False)
    except ValueError:
        text = " ".join(text.split())
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _cut(value: Any) -> Any:
    match value:
        case dict():
            return {name: _cut(item) for name, item in value.items()}
        case list() if len(value) > 3:
            return [*map(_cut, value[:3]), f"… {len(value) - 3} more"]
        case list():
            return [_cut(item) for item in value]
        case str() if len(value) > 60:
            return f"{value[:59]}…"
    return value


def _found(value: Any) -> Told:
    """What XML has: of several elements the first counts."""
    if value is None:
        return "absent", None
    return "there", value[0] if isinstance(value, list) else value


def _as_json_paths(path: Path) -> Iterator[str]:
    """A path as it leads through JSON; the root of an XPath may be left out there."""
    if path.language == "jsonpath":
        yield path.text
    elif path.steps is not None:
        plain = re.sub(r"/(?:@|[\w.-]+:)", "/", path.text)
        yield plain
        if _ROOT.match(plain):
            yield _ROOT.sub(r"\1", plain)


def _in_json(text: str, document: Any) -> Told:
    """What is at a path; a null on the way, or a list that is too short, leaves it open."""
    counted = _COUNTED.match(text)
    here, left_open = [document], False
    for step in steps_of(counted[1] if counted else text):
        below: list[Any] = []
        for value in here:
            match step, value:
                case str(), dict() if step in value:
                    below.append(value[step])
                case int() | None, list():
                    items = value if step is None else value[step : step + 1 or None]
                    left_open = left_open or not items
                    below += items
                case None, dict():
                    below += value.values()
                case _, None:
                    left_open = True
        here = below
    if not here and not left_open:
        return "absent", None
    if all(each is None for each in here) and not counted:
        return "open", None
    value = compiled(f"count({counted[1]})" if counted else text)(document)
    single = isinstance(value, list) and "*" in text and len(value) == 1
    return "there", value[0] if single else value


def _documents(document: dict[str, Any]) -> list[str]:
    """The XML that an event carries in its columns."""
    texts = [value for value in document.values() if isinstance(value, str)]
    return [text for text in texts if text.lstrip().startswith("<")]


def _is(found: Any, wanted: str) -> bool:
    if wanted in ("ANY", "STRING"):
        return True
    if isinstance(found, list | dict):
        return False
    if wanted == "BOOLEAN":
        return isinstance(found, bool) or str(found).strip().lower() in ("true", "false", "0", "1")
    try:
        if wanted == "TIMESTAMP":
            return isinstance(found, str) and datetime.fromisoformat(found.strip()) is not None
        number = float(found)
    except (TypeError, ValueError):
        return False
    return not isinstance(found, bool) and (wanted == "NUMBER" or number.is_integer())
