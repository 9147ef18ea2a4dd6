"""Concise provenance: only the rows that decided a least or greatest value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.errors import FlowError
from headwater.flow.terms import Call, unaliased

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.flow.expressions import Expr
    from headwater.flow.terms import Term


def require_extremes(exprs: Iterable[Expr]) -> None:
    """Refuse concise provenance where not all aggregates are `min` or `max`."""
    for expr in exprs:
        if extreme(expr) is None:
            raise FlowError(
                f"agg: concise=True is for min and max alone, and {expr} is neither; "
                "put it into another groupBy, or leave concise out"
            )


def extreme(expr: Expr) -> tuple[str, Term] | None:
    """Which end an aggregate takes (`min` or `max`) and of what, if it takes one."""
    match unaliased(expr.term):
        case Call(name="min" | "max" as end, args=(argument,)):
            return end, argument
    return None
