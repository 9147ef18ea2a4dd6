"""Which columns each kind of node names, and of which input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.compose.kinds import (
    Aggregate,
    Filter,
    Function,
    Join,
    Map,
    Match,
    Service,
    Sql,
)
from headwater.compose.queries import expression_of, query_of

if TYPE_CHECKING:
    from headwater.compose.node import Node


@dataclass(frozen=True, slots=True)
class Use:
    """A column that a node names; `port` None is any of its inputs."""

    column: str
    key: str
    port: str | None
    wrong: str | None = None
    """Why the text that names it could not be read."""


def uses(node: Node, first: str | None) -> list[Use]:
    """Every column that a node names, once for each key and port; `first` is where streams come."""
    return list(dict.fromkeys(_uses(node, first)))


def _uses(node: Node, first: str | None) -> Iterator[Use]:
    match node:
        case Filter(where=where):
            yield from _sql("where", where, first)
        case Map(columns=columns, keep=keep):
            yield from _names("keep", [c for c in keep if c != "*"], first)
            yield from _table("columns", columns, first)
        case Function(keep=keep):
            yield from _names("keep", keep, first)
        case Service(request=request):
            if isinstance(request, Mapping):
                yield from _table("request", request, first)
            else:
                yield from _names("request", request or (), first)
        case Aggregate():
            yield from _names("by", node.by, first)
            yield from _table("columns", node.columns, first)
            yield from _names("order_by", node.order_by, first)
            if node.window.on is not None:
                yield from _sql("window", node.window.on, first)
        case Match():
            yield from _names("by", node.by, first)
            yield from _names("order_by", node.order_by, first)
            for key in ("define", "measures"):
                yield from _table(key, getattr(node, key), first, variables(node.pattern))
        case Join():
            yield from _joined(node)
        case Sql(query=query):
            ports = {port.name.casefold(): port.name for port in node.inputs}
            for table, column in query_of(query).used:
                if table is not None and table.casefold() in ports:
                    yield Use(column, "query", ports[table.casefold()])


def _joined(node: Join) -> Iterator[Use]:
    for port in node.inputs:
        yield from _names("on", node.on, port.name)
    for key, port in zip(("left_on", "right_on"), node.inputs, strict=False):
        if (text := getattr(node, key)) is not None:
            yield from _sql(key, text, port.name)
    if node.where is not None:
        ports = {port.name for port in node.inputs}
        for parts in expression_of(node.where).columns:
            if len(parts) > 1 and parts[0] in ports:
                yield Use(parts[1], "where", parts[0])
            elif len(parts) == 1:
                yield Use(parts[0], "where", None)


def variables(pattern: str) -> frozenset[str]:
    """The words of a pattern that stand for rows."""
    from headwater.errors import FlowError
    from headwater.ordered.patterns import parsing

    try:
        return frozenset(parsing.variables(parsing.parse(pattern)))
    except FlowError:
        return frozenset()


def _names(key: str, columns: object, port: str | None) -> Iterator[Use]:
    if isinstance(columns, list | tuple):
        for column in columns:
            yield Use(str(column), key, port)


def _table(
    key: str, columns: Mapping[str, str], port: str | None, rows: frozenset[str] = frozenset()
) -> Iterator[Use]:
    for text in columns.values():
        yield from _sql(key, text, port, rows)


def _sql(
    key: str, text: str, port: str | None, rows: frozenset[str] = frozenset()
) -> Iterator[Use]:
    told = expression_of(text)
    if told.wrong is not None:
        yield Use(text, key, port, told.wrong)
    folded = {row.casefold() for row in rows}
    for parts in told.columns:
        own = parts[1:] if parts[0].casefold() in folded else parts
        if own:
            yield Use(own[0], key, port)
