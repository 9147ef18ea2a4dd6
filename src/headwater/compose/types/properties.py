"""Properties against what is known of their stream: Streamflow's inference rules (§5.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.compose.types.examples import by_example
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
    """Whether a property of a stream is valid, by the first rule that says so.

    An event that has none of it, or something else, says more than any rule.
    """
    told = _by_rules(bound, known, schema)
    if event is None or told.verdict == "invalid":
        return told
    seen = by_example(bound, event, told.type)
    return seen if seen.verdict == "invalid" or told.verdict == "unknown" else told


def _by_rules(bound: Property, known: Known, schema: Type | None) -> Fact:
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
