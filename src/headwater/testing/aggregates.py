"""Aggregate functions over the rows of one group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.flow.terms import As, Call, Cast, Literal, Ref, Star, Term
from headwater.testing.evaluate import call, cast, evaluate, literal
from headwater.testing.rows import InterpreterError, Row, Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_OVER_KNOWN: dict[str, Callable[[list[Any]], Any]] = {
    "sum": lambda values: sum(values) if values else None,
    "min": lambda values: min(values, default=None),
    "max": lambda values: max(values, default=None),
    "avg": lambda values: sum(values) / len(values) if values else None,
    "mean": lambda values: sum(values) / len(values) if values else None,
    "bool_and": lambda values: all(values) if values else None,
    "bool_or": lambda values: any(values) if values else None,
    # Order is Spark's choice: sorted here, and the comparison sorts arrays too.
    "collect_set": lambda values: tuple(sorted(set(values))),
    "collect_list": lambda values: tuple(sorted(values)),
    "array_agg": lambda values: tuple(sorted(values)),
}
"""Functions of the values that are not null."""


def is_aggregate(term: Term) -> bool:
    """Whether a term is itself a call of an aggregate function."""
    return isinstance(term, Call) and (term.name == "count" or term.name in _OVER_KNOWN)


def aggregate(term: Term, schema: Schema, rows: Sequence[Row]) -> Any:
    """The value of an aggregate expression over a group's rows."""
    match term:
        case As(child=child):
            return aggregate(child, schema, rows)
        case Cast(child=child, type=type_):
            return cast(aggregate(child, schema, rows), type_)
        case Literal():
            return literal(term)
        case Ref():
            # A group key: all rows agree on it.
            return evaluate(term, schema, rows[0])
        case Call() if is_aggregate(term):
            return _apply(term, schema, rows)
        case Call(name=name, args=args):
            return call(name, args, lambda arg: aggregate(arg, schema, rows))
    raise InterpreterError(f"the reference interpreter can't aggregate {term.text()}")


def _apply(term: Call, schema: Schema, rows: Sequence[Row]) -> Any:
    if term.distinct:
        raise InterpreterError(f"Spark refuses {term.text()} on a stream")
    if term.name == "count":
        if term.args == () or isinstance(term.args[0], Star):
            return len(rows)
        per_row = ([evaluate(arg, schema, row) for arg in term.args] for row in rows)
        return sum(all(v is not None for v in values) for values in per_row)
    values = [evaluate(term.args[0], schema, row) for row in rows]
    return _OVER_KNOWN[term.name]([v for v in values if v is not None])
