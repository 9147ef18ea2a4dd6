"""Expressions as plain data: what a Column or a SQL text says, without Spark.

Spark parses; a `Term` is the tree that it parsed. Steps are described, checked and
interpreted (by `headwater.testing`) from terms, while lowerings hand the user's own
Columns to Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True, slots=True)
class Term:
    """A part of an expression."""

    def children(self) -> tuple[Term, ...]:
        """The terms directly below this one."""
        return ()

    def walk(self) -> Iterator[Term]:
        """This term and every one below it, outermost first."""
        yield self
        for child in self.children():
            yield from child.walk()

    def text(self) -> str:
        """The term as SQL."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True, slots=True)
class Ref(Term):
    """A column by its name parts, such as `speed` or `left.speed`."""

    parts: tuple[str, ...]

    def text(self) -> str:
        return ".".join(part if part.isidentifier() else f"`{part}`" for part in self.parts)


@dataclass(frozen=True, slots=True)
class Literal(Term):
    """A constant with its Spark type (intervals are in microseconds)."""

    value: Any
    type: str

    def text(self) -> str:
        if self.value is None:
            return "NULL"
        if self.type == "string":
            return "'" + str(self.value).replace("\\", "\\\\").replace("'", "\\'") + "'"
        if self.type == "boolean":
            return "true" if self.value else "false"
        if self.type.startswith("interval"):
            return f"INTERVAL {timedelta(microseconds=self.value).total_seconds():g} SECONDS"
        if self.type == "timestamp":
            moment = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=self.value)
            return f"TIMESTAMP '{moment.isoformat(sep=' ')}'"
        suffix = {"bigint": "L", "double": "D"}.get(self.type, "")
        return f"{self.value}{suffix}"


_INFIX = {"=", "<=>", "<", "<=", ">", ">=", "!=", "+", "-", "*", "/", "%", "and", "or", "like"}


@dataclass(frozen=True, slots=True)
class Call(Term):
    """A function or operator applied to arguments; operators go by their symbol."""

    name: str
    args: tuple[Term, ...]
    distinct: bool = False

    def children(self) -> tuple[Term, ...]:
        return self.args

    def text(self) -> str:
        args = [arg.text() for arg in self.args]
        match self.name:
            case name if name in _INFIX and len(args) == 2:
                return f"({args[0]} {name.upper() if name.isalpha() else name} {args[1]})"
            case "not":
                return f"(NOT {args[0]})"
            case "isnull" | "isnotnull":
                return f"({args[0]} IS {'NOT ' if self.name == 'isnotnull' else ''}NULL)"
            case "in":
                return f"({args[0]} IN ({', '.join(args[1:])}))"
            case "between":
                return f"({args[0]} BETWEEN {args[1]} AND {args[2]})"
            case "case":
                pairs = zip(args[::2], args[1::2], strict=False)
                whens = " ".join(f"WHEN {when} THEN {then}" for when, then in pairs)
                tail = f" ELSE {args[-1]}" if len(args) % 2 else ""
                return f"CASE {whens}{tail} END"
            case "get":
                return f"{args[0]}[{args[1]}]"
        return f"{self.name}({'DISTINCT ' if self.distinct else ''}{', '.join(args)})"


@dataclass(frozen=True, slots=True)
class Cast(Term):
    """A conversion to a Spark type."""

    child: Term
    type: str

    def children(self) -> tuple[Term, ...]:
        return (self.child,)

    def text(self) -> str:
        return f"CAST({self.child} AS {self.type.upper()})"


@dataclass(frozen=True, slots=True)
class As(Term):
    """An expression under a name (several for a generator such as posexplode)."""

    child: Term
    names: tuple[str, ...]

    def children(self) -> tuple[Term, ...]:
        return (self.child,)

    def text(self) -> str:
        names = ", ".join(Ref((name,)).text() for name in self.names)
        return f"{self.child} AS {names if len(self.names) == 1 else f'({names})'}"


@dataclass(frozen=True, slots=True)
class Star(Term):
    """All columns, or all of one alias."""

    target: tuple[str, ...] = ()

    def text(self) -> str:
        return ".".join((*self.target, "*"))


@dataclass(frozen=True, slots=True)
class Opaque(Term):
    """What Spark evaluates and Headwater does not look into: a Python function, a lambda."""

    label: str
    args: tuple[Term, ...] = ()

    def children(self) -> tuple[Term, ...]:
        return self.args

    def text(self) -> str:
        return (
            f"{self.label}({', '.join(arg.text() for arg in self.args)})"
            if self.args
            else self.label
        )


def rewrite(term: Term, change: Callable[[Term], Term | None]) -> Term:
    """The term with every part for which `change` answers replaced by its answer.

    >>> rewrite(
    ...     Call("+", (Ref(("a",)), Literal(1, "int"))),
    ...     lambda t: Ref(("b",)) if t == Ref(("a",)) else None,
    ... ).text()
    '(b + 1)'
    """
    changed = change(term)
    if changed is not None:
        return changed
    match term:
        case Call() | Opaque():
            return replace(term, args=tuple(rewrite(arg, change) for arg in term.args))
        case Cast() | As():
            return replace(term, child=rewrite(term.child, change))
    assert not any(isinstance(getattr(term, f.name), Term) for f in fields(term))
    return term


def unaliased(term: Term) -> Term:
    """The expression under its name, if it has one."""
    return unaliased(term.child) if isinstance(term, As) else term
