"""What each kind of node gives out, from what is known of what it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.compose.kinds import (
    Aggregate,
    Filter,
    Function,
    Job,
    Join,
    Map,
    Match,
    Merge,
    Service,
    Sink,
    Source,
    Sql,
    Static,
)
from headwater.compose.queries import query_of
from headwater.compose.types.facts import Fact, Known, merged
from headwater.compose.types.schemas import Type, parse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.compose.node import Node

UNKNOWN = Known()


def output(name: str, node: Node, inputs: dict[str, Known]) -> Known:
    """What is known of a node's rows before its own properties are bound."""
    above = list(inputs.values()) or [UNKNOWN]
    first = above[0]
    match node:
        case Source(schema=schema) | Static(schema=schema) | Job(schema=schema):
            return Known(_schema(schema, name), schema is not None, name=name)
        case Filter() | Sink():
            return unaltered(first, name)
        case Merge():
            return merged(above, name)
        case Map(columns=columns, keep=keep):
            kept = _kept(first, keep, name)
            made = _made(columns, f"{name!r} makes it")
            return Known({**kept, **made}, first.complete or "*" not in keep, name=name)
        case Function(schema=schema, keep=keep):
            kept = _kept(first, keep, name)
            return Known({**_schema(schema, name), **kept}, True, name=name)
        case Service(response=response):
            own = unaltered(first, name)
            return Known({**own.facts, **_schema(response, name)}, own.complete, own.paths, name)
        case Aggregate(by=by, columns=columns, window=window):
            span = ["window"] if window.measure in ("time", "session") else []
            made = _made([*span, *columns], f"{name!r} makes it")
            return Known({**_kept(first, by, name), **made}, True, name=name)
        case Match(by=by, measures=measures):
            kept = _kept(first, by, name)
            return Known({**kept, **_made(measures, f"{name!r} makes it")}, True, name=name)
        case Join():
            return _joined(name, node, inputs)
        case Sql():
            return _queried(name, node, inputs)
    return Known(name=name)


def _joined(name: str, node: Join, inputs: dict[str, Known]) -> Known:
    """The columns of both; what both have, the second port's has the port's name before it."""
    facts: dict[str, Fact] = {}
    for port, known in inputs.items():
        for column, fact in known.facts.items():
            if column not in facts:
                facts[column] = fact
            elif column not in node.on:
                facts[f"{port}_{column}"] = fact
    return Known(facts, all(known.complete for known in inputs.values()), name=name)


def unaltered(above: Known, name: str) -> Known:
    """The same events, fewer of them: a structurally unaltered derivation."""
    facts = {column: fact.by("derivation") for column, fact in above.facts.items()}
    return Known(facts, above.complete, above.paths, name)


def failures(above: Known, name: str) -> Known:
    """The events that a service or job gave up, with the reason."""
    made = _made(["reason", "attempts"], "failures have it")
    return Known({**unaltered(above, name).facts, **made}, above.complete, above.paths, name)


def _queried(name: str, node: Sql, inputs: dict[str, Known]) -> Known:
    if node.schema is not None:
        return Known(_schema(node.schema, name), True, name=name)
    query = query_of(node.query)
    folded = {port.casefold(): known for port, known in inputs.items()}
    above = folded.get(query.tables[0].casefold()) if query.tables else None
    if query.unaltered and above is not None:
        return unaltered(above, name)
    if query.columns is None or above is None:
        return Known(name=name)
    facts = unaltered(above, name).facts if query.star else {}
    made = _made(query.columns, f"the query of {name!r} makes it")
    for column in made:
        if len(query.tables) == 1 and (told := above.get(column)) is not None:
            made[column] = told.by("derivation")
    return Known({**facts, **made}, above.complete or not query.star, name=name)


def _schema(text: str | None, name: str) -> dict[str, Fact]:
    if text is None:
        return {}
    reason = f"the schema of {name!r} has it"
    return {c: Fact("valid", "schema", reason, kind) for c, kind in parse(text).parts}


def _made(columns: Iterable[str], reason: str) -> dict[str, Fact]:
    return {column: Fact("valid", "schema", reason) for column in columns}


def _kept(above: Known, columns: Iterable[str], name: str) -> dict[str, Fact]:
    facts = unaltered(above, name).facts
    if "*" in columns:
        return dict(facts)
    return {c: facts.get(c) or above.look(c) for c in columns}


def struct(node: Node) -> Type | None:
    """The structure of a node's events that properties are held against."""
    text = getattr(node, "response", None) or getattr(node, "schema", None)
    return None if text is None else parse(text)
