"""Which rows of a group decide its least and greatest values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.flow.concise import extreme
from headwater.testing.evaluate import evaluate
from headwater.testing.rows import InterpreterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.flow.expressions import Expr
    from headwater.testing.rows import Row, Schema


def deciding(columns: Sequence[Expr], schema: Schema, rows: Sequence[Row]) -> list[Row]:
    """The rows that have the value of one of some aggregates; all rows where none has a value."""
    chosen: set[int] = set()
    for expr in columns:
        found = extreme(expr)
        if found is None:
            raise InterpreterError(f"{expr} is neither min nor max")
        end, term = found
        values = [evaluate(term, schema, row) for row in rows]
        known = [value for value in values if value is not None]
        if known:
            best = max(known) if end == "max" else min(known)
            chosen |= {i for i, value in enumerate(values) if value == best}
    return [rows[i] for i in sorted(chosen)] or list(rows)
