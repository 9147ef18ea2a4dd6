"""Operators of one stream: filter, map, aggregate, match, and any SQL."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from headwater.compose.cardinality import FEWER, ONE, UNKNOWN, Cardinality
from headwater.compose.kinds.ends import EMPTY
from headwater.compose.node import Node, Runtime, key
from headwater.compose.queries import query_of
from headwater.compose.structures import Schemas
from headwater.compose.types.bindings import Bindings, Property
from headwater.compose.values import Choice, Duration, Flag, Names, Pairs, Text
from headwater.compose.violations import a
from headwater.compose.windows import Window, Windows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.compose.frozen import Table

SQL = Text("SQL")
COLUMNS = Pairs(SQL, "columns with SQL")
NATIVE: tuple[Runtime, ...] = ("operators", "functions")
_MANY = re.compile(r"\b(explode|posexplode|inline|stack|json_tuple)(_outer)?\s*\(", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter(Node):
    """Events for which a condition holds."""

    kind: ClassVar[str] = "filter"
    runtimes: ClassVar[tuple[Runtime, ...]] = NATIVE
    rigid: ClassVar[bool] = True

    where: str = field(metadata=key(SQL, "the condition"))
    bind: Table[Property] = field(
        default=EMPTY, metadata=key(Bindings(), "properties of an event by path")
    )

    @property
    def natural(self) -> Cardinality:
        """One or none for each."""
        return FEWER

    @property
    def one_to_one(self) -> bool:
        """Never: that it lets all pass can't be known, and would make it needless."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Map(Node):
    """Other columns of the same events, by SQL expressions."""

    kind: ClassVar[str] = "map"
    runtimes: ClassVar[tuple[Runtime, ...]] = NATIVE
    promotable: ClassVar[bool] = True

    columns: Table[str] = field(metadata=key(COLUMNS, "the new columns, each with its expression"))
    keep: tuple[str, ...] = field(
        default=(), metadata=key(Names(), "columns that pass unchanged; `*` is all")
    )

    @property
    def natural(self) -> Cardinality:
        """One for each, unless an expression makes rows."""
        return UNKNOWN if any(map(_MANY.search, self.columns.values())) else ONE

    def contradictions(self) -> Iterator[str]:
        """A column is kept or new."""
        yield from nothing(self, "columns")
        yield from clash(self.keep, self.columns, "keep and columns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate(Node):
    """One event for each window of events: so many, or a time; following or sliding."""

    kind: ClassVar[str] = "aggregate"
    runtimes: ClassVar[tuple[Runtime, ...]] = NATIVE
    rigid: ClassVar[bool] = True

    window: Window = field(
        metadata=key(Windows(), "count, time, value or session, and how far it slides")
    )
    by: tuple[str, ...] = field(
        default=(), metadata=key(Names(), "columns with windows for each of their values")
    )
    columns: Table[str] = field(metadata=key(COLUMNS, "aggregates, each under its name"))
    order_by: tuple[str, ...] = field(
        default=(), metadata=key(Names(), "what tells the order of arrival")
    )

    @property
    def natural(self) -> Cardinality:
        """One for each slide of a count; times and values depend on the events."""
        if self.window.count is None:
            return UNKNOWN
        slide = self.window.slide if isinstance(self.window.slide, int) else self.window.count
        return Cardinality(ratio=Fraction(1, slide))

    @property
    def one_to_one(self) -> bool:
        """Only when told so: even a slide of 1 gives nothing for the first events."""
        return self.cardinality is not None and self.cardinality.is_one

    def contradictions(self) -> Iterator[str]:
        """A column is a key or an aggregate."""
        yield from nothing(self, "columns")
        yield from clash(self.by, self.columns, "by and columns")
        if self.order_by and self.window.measure in ("time", "session"):
            yield f"order_by means nothing for a window of {self.window.measure}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Match(Node):
    """One event for each sequence of events that matches a pattern."""

    kind: ClassVar[str] = "match"
    runtimes: ClassVar[tuple[Runtime, ...]] = NATIVE
    rigid: ClassVar[bool] = True

    pattern: str = field(metadata=key(Text("a pattern", example="A B+"), "the sequence, `A B+ C?`"))
    define: Table[str] = field(
        default=EMPTY, metadata=key(COLUMNS, "the condition of each variable")
    )
    measures: Table[str] = field(metadata=key(COLUMNS, "what a match says, each under its name"))
    by: tuple[str, ...] = field(
        default=(), metadata=key(Names(), "columns with sequences for each of their values")
    )
    within: str | None = field(
        default=None, metadata=key(Duration(), "the time that a match may take")
    )
    after_match: str = field(default="skip past last row", metadata=key(Text(), "where to go on"))
    select: str = field(
        default="strict",
        metadata=key(Choice(("strict", "next")), "next: pass over what doesn't fit"),
    )
    order_by: tuple[str, ...] = field(
        default=(), metadata=key(Names(), "what tells the order of arrival")
    )

    @property
    def natural(self) -> Cardinality:
        """At most one for each first event."""
        return FEWER

    @property
    def one_to_one(self) -> bool:
        """Never."""
        return False

    def contradictions(self) -> Iterator[str]:
        """A pattern that can be read, and something to say of a match."""
        from headwater.errors import FlowError
        from headwater.ordered.patterns.parsing import parse

        yield from nothing(self, "measures")
        yield from clash(self.by, self.measures, "by and measures")
        try:
            parse(self.pattern, list(self.define))
        except FlowError as error:
            yield " ".join(str(error).split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Sql(Node):
    """Whatever a query makes of its inputs, each a table under its port's name."""

    kind: ClassVar[str] = "sql"
    ports: ClassVar[tuple[int, int | None]] = (1, None)
    runtimes: ClassVar[tuple[Runtime, ...]] = NATIVE
    statics: ClassVar[bool] = True
    joins: ClassVar[bool] = True

    query: str = field(metadata=key(SQL, "a SELECT in Spark's SQL"))
    schema: str | None = field(
        default=None, metadata=key(Schemas(), "the columns, where the query does not tell")
    )
    bind: Table[Property] = field(
        default=EMPTY, metadata=key(Bindings(), "properties of an event by path")
    )
    many: bool = field(
        default=False, metadata=key(Flag(), "the query may make several events of one")
    )

    @property
    def natural(self) -> Cardinality:
        """As far as the query tells."""
        if self.many:
            return UNKNOWN
        return query_of(self.query).cardinality

    def contradictions(self) -> Iterator[str]:
        """A query that can be read."""
        if (wrong := query_of(self.query).wrong) is not None:
            yield f"query {wrong}"


def nothing(node: Node, name: str) -> Iterator[str]:
    """A complaint if a table of columns is empty."""
    if not getattr(node, name):
        yield f"{name} of {a(node.kind)} has at least one column"


def clash(first: Any, second: Any, what: str) -> Iterator[str]:
    """A complaint if a name is in both."""
    for name in first:
        if name in second:
            yield f"{name!r} is in both {what}; rename one"
