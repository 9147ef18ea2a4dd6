"""One function per stateless node kind: its output columns and what it does to a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from headwater.flow.terms import As, Ref, Term, unaliased
from headwater.testing.evaluate import evaluate
from headwater.testing.operators import Mapped, Operator
from headwater.testing.rows import Column, InterpreterError, Row, Schema
from headwater.testing.selecting import Projection, positions

if TYPE_CHECKING:
    from headwater.flow import nodes


def filter_(node: nodes.Filter, above: Operator) -> Operator:
    """Rows for which the condition is true; null is not."""
    schema, condition = above.schema, node.condition.term
    used = positions([condition], schema)

    def rows(row: Row) -> Iterable[Row]:
        return (row,) if evaluate(condition, schema, row) is True else ()

    return Mapped(node, (above,), schema, rows, lambda columns: columns | used)


def project(node: nodes.Project, above: Operator) -> Operator:
    """A select list without a generator."""
    return Projection([expr.term for expr in node.columns], above.schema).operator(node, above)


def with_columns(node: nodes.WithColumns, above: Operator) -> Operator:
    """Columns replaced in place, new ones at the end; all see the input's columns."""
    schema = above.schema
    new = {name.lower(): As(unaliased(expr.term), (name,)) for name, expr in node.columns}
    items: list[Term | int] = [new.pop(schema.columns[i].name.lower(), i) for i in schema.visible()]
    return Projection([*items, *new.values()], schema).operator(node, above)


def rename(node: nodes.Rename, above: Operator) -> Operator:
    """The same values; a renamed column is a new one that keeps the mark."""
    new = {old.lower(): name for old, name in node.names}
    chosen = Projection(above.schema.visible(), above.schema)
    chosen.schema = Schema(
        tuple(
            column.renamed(new[column.name.lower()]) if column.name.lower() in new else column
            for column in chosen.schema
        )
    )
    return chosen.operator(node, above)


def drop(node: nodes.Drop, above: Operator) -> Operator:
    """The columns that are not named; a plain name means every column of that name."""
    schema = above.schema
    gone: set[int] = set()
    for expr in node.columns:
        term = expr.term
        if not isinstance(term, Ref):
            raise InterpreterError(f"{node.step}: can't drop {term.text()}")
        name = term.parts[-1].lower()
        qualifier = term.parts[0].lower() if len(term.parts) > 1 else None
        gone |= {
            i
            for i, c in enumerate(schema.columns)
            if c.name.lower() == name
            and (qualifier is None or (c.qualifier or "").lower() == qualifier)
        }
    return Projection([i for i in schema.visible() if i not in gone], schema).operator(node, above)


def alias(node: nodes.Alias, above: Operator) -> Operator:
    """The same rows under a qualifier."""
    schema = above.schema.qualified(node.name)
    return Mapped(node, (above,), schema, lambda row: (row,), lambda columns: columns)


def explode(node: nodes.Explode, above: Operator) -> Operator:
    """One row for each element; the `outer` forms keep a row for no element."""
    schema = above.schema
    head = Projection([expr.term for expr in node.columns[: node.at]], schema)
    tail = Projection([expr.term for expr in node.columns[node.at + 1 :]], schema)
    (argument,) = unaliased(node.columns[node.at].term).children()
    made = tuple(Column(name) for name in node.names)
    numbered = node.function.startswith("pos")

    def rows(row: Row) -> Iterator[Row]:
        array = evaluate(argument, schema, row) or ()
        elements: list[tuple[Any, ...]] = [
            (i, e) if numbered else (e,) for i, e in enumerate(array)
        ]
        if not elements and node.function.endswith("_outer"):
            elements = [(None,) * len(made)]
        for element in elements:
            yield row.with_values((*head.values(row), *element, *tail.values(row)))

    def uses(columns: set[int]) -> set[int]:
        before, after = len(head.schema), len(head.schema) + len(made)
        kept = head.uses({i for i in columns if i < before})
        kept |= tail.uses({i - after for i in columns if i >= after})
        return kept | positions([argument], schema)

    columns = (*head.schema, *made, *tail.schema)
    return Mapped(node, (above,), Schema(columns), rows, uses, many=True)


class Record(Mapping[str, Any]):
    """A row as a user's Python function sees it: by attribute, by name and by position."""

    def __init__(self, names: tuple[str, ...], values: tuple[Any, ...]) -> None:
        self._names, self._values = names, values

    def __getitem__(self, key: Any) -> Any:
        return self._values[key if isinstance(key, int) else self._names.index(key)]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._names:
            raise AttributeError(name)
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def asDict(self) -> dict[str, Any]:
        """The row as a dictionary, as PySpark's Row gives it."""
        return dict(zip(self._names, self._values, strict=True))


def flat_map(node: nodes.FlatMap, above: Operator) -> Operator:
    """The rows that a Python function makes of each row, beside the kept columns."""
    schema = above.schema
    visible = schema.visible()
    names = tuple(schema.columns[i].name for i in visible)
    kept = [schema.find((name,))[0] for name in node.keep]
    made = node.schema.fieldNames()

    def rows(row: Row) -> Iterator[Row]:
        record = Record(names, tuple(row.values[i] for i in visible))
        for out in node.function(record) or ():
            values = tuple(out.get(n) for n in made) if isinstance(out, Mapping) else tuple(out)
            yield row.with_values((*(row.values[i] for i in kept), *values))

    columns = (*(schema.columns[i] for i in kept), *(Column(name) for name in made))
    return Mapped(node, (above,), Schema(columns), rows, lambda _: set(visible), many=True)
