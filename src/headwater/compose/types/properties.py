"""Properties against what is known of their stream: Streamflow's inference rules (§5.6)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from headwater.compose.types.facts import Fact, Known
from headwater.compose.types.schemas import Type

if TYPE_CHECKING:
    from headwater.compose.types.bindings import Property
    from headwater.compose.types.paths import Path

_FAMILIES = {
    "NUMBER": Type("double"),
    "INTEGER": Type("bigint"),
    "STRING": Type("string"),
    "BOOLEAN": Type("boolean"),
    "TIMESTAMP": Type("timestamp"),
}
"""What a property is to SQL."""


_REASONS = {
    "validated": "{!r} has this path already",
    "substructure": "it is on the way to a valid property of {!r}",
    "merge": "it is valid in all inputs of {!r}",
}


def judge(bound: Property, known: Known, schema: Type | None, event: str | bytes | None) -> Fact:
    """Whether a property of a stream is valid, by the first rule that says so."""
    path = bound.path
    made = _FAMILIES.get(bound.type)
    if schema is not None and path.steps is not None and not _may_be_inside(schema, path):
        there = within(schema, path)
        if there is None:
            text = f"the schema of {known.name!r} has no {path.text}"
            return Fact("invalid", "schema", text, made, path)
        if not _fits(bound.type, Type("bigint") if path.counts else there):
            text = f"the schema of {known.name!r} says {there}, not {bound.type}"
            return Fact("invalid", "schema", text, made, path)
        return Fact("valid", "schema", f"the schema of {known.name!r} has it", made, path)
    rule = known.holds(path)
    if rule is not None:
        longer = any(path.within(p) and path.steps != p.steps for p in known.paths)
        if longer and not path.counts and bound.type not in ("ANY", "STRING"):
            text = f"it holds other elements, so it is no {bound.type}"
            return Fact("invalid", rule, text, made, path)
        return Fact("valid", rule, _REASONS[rule].format(known.name), made, path)
    if event is not None:
        return _by_example(bound, event, made)
    reason = f"{known.name!r} has no schema that tells"
    return Fact("unknown", "none", reason, made, path)


def _may_be_inside(schema: Type, path: Path) -> bool:
    """Whether a column of text may hold the document that an XPath leads through."""
    if path.language != "xpath" or not path.steps or within(schema, path) is not None:
        return False
    return schema.part(path.steps[0]) is None and any(
        kind.family == "STRING" or kind.name in ("binary", "variant") for _, kind in schema.parts
    )


def within(schema: Type, path: Path) -> Type | None:
    """The type of what a path leads to, by a schema; None where there is nothing.

    An XPath begins with the root, which the schema may have as its one column or leave out.
    """
    steps = path.steps or ()
    starts = [steps] if path.language == "jsonpath" else [steps, steps[1:]]
    for start in starts:
        at: Type | None = schema
        for step in start:
            at = at.part(step.removeprefix("@")) if at is not None else None
        if at is not None:
            return at
    return None


def _fits(wanted: str, there: Type) -> bool:
    """Whether a value of a type can be taken for another: anything has a text."""
    family = there.family
    if wanted in ("ANY", family) or (wanted, family) == ("NUMBER", "INTEGER"):
        return True
    return wanted == "STRING" and not there.parts


def _by_example(bound: Property, event: str | bytes, made: Type | None) -> Fact:
    path = bound.path
    try:
        found = path.find(event)
    except Exception as error:  # noqa: BLE001 - an event may be anything
        text = f"the last event can't be read: {' '.join(str(error).split())[:80]}"
        return Fact("unknown", "last event", text, made, path)
    if found is None:
        text = f"the last event has nothing at {path.text}"
        return Fact("unknown", "last event", text, made, path)
    shown = str(found)[:40]
    if not _is(found, bound.type):
        text = f"the last event has {shown!r} there, which is no {bound.type}"
        return Fact("invalid", "last event", text, made, path)
    return Fact("valid", "last event", f"the last event has {shown!r} there", made, path)


def _is(found: Any, wanted: str) -> bool:
    if wanted in ("ANY", "STRING", "TIMESTAMP"):
        return True
    if isinstance(found, list | dict):
        return False
    if wanted == "BOOLEAN":
        return isinstance(found, bool) or str(found).strip().lower() in ("true", "false", "0", "1")
    try:
        number = float(found)
    except (TypeError, ValueError):
        return False
    return not isinstance(found, bool) and (wanted == "NUMBER" or number.is_integer())


def columns_of(event: str | bytes | None) -> list[str]:
    """The names that the last event has, where it is an object of JSON."""
    try:
        told = json.loads(event) if event is not None else None
    except ValueError:
        return []
    return [str(name) for name in told] if isinstance(told, dict) else []
