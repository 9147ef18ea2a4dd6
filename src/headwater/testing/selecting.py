"""Select lists: the columns that expressions make, and what they are made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.flow.terms import As, Call, Ref, Star, Term, unaliased
from headwater.testing.evaluate import evaluate
from headwater.testing.operators import Mapped, Operator
from headwater.testing.rows import Column, Row, Schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.flow import nodes


def output_column(term: Term, schema: Schema) -> Column:
    """The column that an expression makes: a plain reference keeps its identity and mark."""
    match term:
        case As(child=child, names=(name,)):
            return output_column(child, schema).renamed(name)
        case Ref(parts=parts):
            at, fields = schema.find(parts)
            return schema.columns[at] if not fields else Column(fields[-1])
        case Call(name="window_time", args=(argument,)):
            return Column(term.text(), mark=output_column(argument, schema).mark)
    return Column(unaliased(term).text())


def positions(terms: Iterable[Term], schema: Schema) -> set[int]:
    """The columns that terms refer to."""
    found = (part for term in terms for part in term.walk() if isinstance(part, Ref))
    return {schema.find(ref.parts)[0] for ref in found}


def expanded(terms: Iterable[Term | int], schema: Schema) -> list[Term | int]:
    """A select list with each `*` replaced by the positions that it means."""
    result: list[Term | int] = []
    for term in terms:
        if not isinstance(term, Star):
            result.append(term)
            continue
        qualifier = term.target[0].lower() if term.target else None
        result.extend(
            i
            for i in schema.visible()
            if qualifier is None or (schema.columns[i].qualifier or "").lower() == qualifier
        )
    return result


class Projection:
    """A select list: its columns, their values for a row, and what they are made from."""

    def __init__(self, terms: Iterable[Term | int], schema: Schema) -> None:
        self.input = schema
        self.items = expanded(terms, schema)
        self.schema = Schema(
            tuple(
                schema.columns[item] if isinstance(item, int) else output_column(item, schema)
                for item in self.items
            )
        )

    def values(self, row: Row) -> tuple[Any, ...]:
        """The columns' values."""
        return tuple(
            row.values[item] if isinstance(item, int) else evaluate(item, self.input, row)
            for item in self.items
        )

    def uses(self, columns: set[int]) -> set[int]:
        """The input columns that some of the columns are made from."""
        needed: set[int] = set()
        for at in columns:
            item = self.items[at]
            needed |= {item} if isinstance(item, int) else positions([item], self.input)
        return needed

    def operator(self, node: nodes.Node, above: Operator) -> Operator:
        """The step that selects these columns."""

        def rows(row: Row) -> Iterable[Row]:
            return (row.with_values(self.values(row)),)

        return Mapped(node, (above,), self.schema, rows, self.uses)
