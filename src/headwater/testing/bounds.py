"""How long a join of two streams remembers a row, read from its condition as Spark reads it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from headwater.flow.terms import As, Call, Cast, Literal, Ref, Term
from headwater.testing.evaluate import literal
from headwater.testing.operators import milliseconds
from headwater.testing.selecting import positions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.testing.rows import Schema


def conjuncts(term: Term) -> Iterator[Term]:
    """The conditions that must all hold; BETWEEN is two."""
    match term:
        case Call(name="and", args=args):
            for arg in args:
                yield from conjuncts(arg)
        case Call(name="between", args=(value, low, high)):
            yield Call(">=", (value, low))
            yield Call("<=", (value, high))
        case _:
            yield term


@dataclass(frozen=True, slots=True)
class Sides:
    """The columns of both sides of a join, left ones first."""

    schema: Schema
    width: int

    def of(self, term: Term) -> set[str]:
        """Which sides a term refers to."""
        return {"left" if at < self.width else "right" for at in positions([term], self.schema)}

    def key(self, term: Term) -> tuple[Term, Term] | None:
        """The two sides of an equality between the left and the right, left first."""
        if isinstance(term, Call) and term.name == "=":
            a, b = term.args
            if self.of(a) == {"left"} and self.of(b) == {"right"}:
                return a, b
            if self.of(a) == {"right"} and self.of(b) == {"left"}:
                return b, a
        return None

    def is_marked(self, term: Term) -> bool:
        """Whether a term is the event-time column itself."""
        if not isinstance(term, Ref):
            return False
        at, fields = self.schema.find(term.parts)
        return not fields and self.schema.columns[at].mark is not None

    def state_watermark(self, side: str, conditions: list[Term], watermark: int) -> int | None:
        """The time (ms) up to which Spark drops waiting rows of a side.

        A condition `other + a < own + b` and the watermark on the other side's event time bound
        the own time from below; for `<=` Spark's bound is a millisecond lower. Spark does not
        ask whether a column is a time: it reads `v > 2`, in the condition of an outer join where
        it must stay, as a bound of two seconds after 1970, and then never drops anything.
        """
        found = []
        for condition in conditions:
            if not isinstance(condition, Call) or condition.name not in ("<", "<=", ">", ">="):
                continue
            low, high = condition.args if condition.name[0] == "<" else condition.args[::-1]
            bound = self._solve(side, low, high, watermark)
            if bound is not None:
                found.append(bound - 1 if condition.name.endswith("=") else bound)
        return min(found, default=None)

    def _solve(self, side: str, low: Term, high: Term, watermark: int) -> int | None:
        """`low < high` solved for a side's column, its partner's time being the watermark."""
        terms = _linear(low, 1), _linear(high, -1)
        if terms[0] is None or terms[1] is None:
            return None
        constant = timedelta(0)
        signs: dict[str, int] = {}
        for sign, term in (*terms[0], *terms[1]):
            if isinstance(term, timedelta):
                constant += sign * term
                continue
            (where,) = self.of(term)
            if where in signs:
                return None
            signs[where] = sign
            if where != side:
                if not self.is_marked(term):
                    return None
                constant += sign * timedelta(milliseconds=watermark)
        return milliseconds(constant) if signs.get(side) == -1 else None


def _linear(term: Term, sign: int) -> list[tuple[int, Ref | timedelta]] | None:
    """A time as a sum of columns and intervals; None when it is something else."""
    match term:
        case Ref():
            return [(sign, term)]
        case As(child=child):
            return _linear(child, sign)
        case Cast(child=child, type="timestamp" | "int" | "bigint" | "double"):
            return _linear(child, sign)
        case Literal():
            value = literal(term)
            if isinstance(value, int | float) and not isinstance(value, bool):
                value = timedelta(seconds=value)
            return [(sign, value)] if isinstance(value, timedelta) else None
        case Call(name="negative", args=(child,)):
            return _linear(child, -sign)
        case Call(name="+" | "-", args=(a, b)):
            left, right = _linear(a, sign), _linear(b, sign if term.name == "+" else -sign)
            return None if left is None or right is None else [*left, *right]
    return None
