"""Steps that run a user's own code, in the reference interpreter: a row or a group at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type

from headwater.flow.nodes.functions import ANSWER, ATTEMPTS, REASON
from headwater.functions.frames import Shape, given
from headwater.functions.groups import check_positions, key_of
from headwater.service.answers import conformed
from headwater.service.calls import Final, reason_of
from headwater.testing.evaluate import evaluate
from headwater.testing.operators import Batch, Counters, Mapped, Operator
from headwater.testing.rows import NOWHERE, Column, InterpreterError, Row, Schema, Struct, united
from headwater.testing.selecting import positions
from headwater.testing.stateful import Aggregate, Key, Sessions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from headwater.flow import nodes

ZONE = "UTC"


def map_(node: nodes.Map, above: Operator) -> Operator:
    """What a function of batches makes of a batch of one row, beside the kept columns."""
    schema = above.schema
    visible = schema.visible()
    kept = [schema.find((name,))[0] for name in node.keep]
    made = node.schema.fieldNames()
    shape = Shape(node.schema, ZONE, f"map {node.step!r}")

    def rows(row: Row) -> Iterable[Row]:
        batch = _array([tuple(row.values[i] for i in visible)], node.given)
        (values,) = shape.array(node.function(given(batch, node.takes)), 1).to_pylist()
        yield row.with_values((*(row.values[i] for i in kept), *(_own(values[n]) for n in made)))

    columns = (*(schema.columns[i] for i in kept), *(Column(name) for name in made))
    return Mapped(node, (above,), Schema(columns), rows, lambda _: set(visible))


def service(node: nodes.Service, above: Operator) -> Operator:
    """What comes of calling a function for each row; services at URLs are not called here."""
    target, schema = node.target, above.schema
    if isinstance(target, str):
        raise InterpreterError(f"{node.step}: the reference interpreter calls no URLs")
    used = positions((expr.term for _, expr in node.request), schema)
    width = len(schema)

    def rows(row: Row) -> Iterable[Row]:
        event = {n: _given(evaluate(expr.term, schema, row)) for n, expr in node.request}
        answer, reason, attempts = None, None, 0
        while attempts <= node.retries:
            attempts += 1
            try:
                found = target(event, **dict(node.static))
                answer, reason = _own(conformed(found, node.response, ZONE)), None
                break
            except Exception as error:  # noqa: BLE001
                reason = reason_of(error)
                if isinstance(error, Final):
                    break
        said = Struct(((ANSWER, answer), (REASON, reason), (ATTEMPTS, attempts)))
        yield row.with_values((*row.values, said))

    def uses(columns: set[int]) -> set[int]:
        return {i for i in columns if i < width} | used

    return Mapped(node, (above,), Schema((*schema, Column(node.column))), rows, uses)


class _Groups(Aggregate):
    """Complete groups, with their rows in place of aggregates."""

    def needs(self, columns: set[int]) -> Sequence[set[int]]:
        return [set(range(len(self.input)))]

    def result(self, key: Key, rows: Sequence[Row]) -> Row:
        return Row((*key, tuple(rows)), super().result(key, rows).time, united(rows))


class _SessionGroups(Sessions):
    """Complete sessions, with their rows in place of aggregates."""

    def needs(self, columns: set[int]) -> Sequence[set[int]]:
        return [set(range(len(self.input)))]

    def result(self, key: Key, rows: Sequence[Row]) -> Row:
        return Row((*key, tuple(rows)), super().result(key, rows).time, united(rows))


class GroupFunctions(Operator):
    """What a function makes of each group, once it is complete."""

    node: nodes.GroupFunction

    def __init__(
        self, node: nodes.GroupFunction, inputs: Sequence[Operator], counters: Counters
    ) -> None:
        groups: Aggregate | Sessions = _Groups(node, inputs, counters)
        if groups.schema.columns[groups.marked].session:
            groups = _SessionGroups(node, inputs, counters)
        super().__init__(node, (groups,))
        self.kept = [groups.schema.find((name,))[0] for name in node.keep]
        self.schema = Schema(
            (*(groups.schema.columns[i] for i in self.kept), *(Column(name) for name in node.made))
        )
        self.visible = inputs[0].schema.visible()

    @property
    def depth(self) -> int:
        return len(NOWHERE)

    def run(self, batch: Batch) -> list[Row]:
        return [made for group in self.inputs[0].run(batch) for made in self._made(group)]

    def _made(self, group: Row) -> Iterator[Row]:
        node, (*key, rows) = self.node, group.values
        in_order = sorted(rows, key=_place)
        values = [tuple(row.values[i] for i in self.visible) for row in in_order]
        frame = given(_array(values, node.given), "pandas")
        arguments: tuple[Any, ...] = (frame,)
        if node.with_key:
            fields = {str(i): _given(value) for i, value in enumerate(key)}
            arguments = (key_of(pa.scalar(fields), ZONE), frame)
        where = f"applyInPandas {node.step!r}"
        made = Shape(node.schema, ZONE, where).array(node.function(*arguments))
        if node.contributing is not None:
            check_positions(made, node.contributing, len(rows), where)
        for values_ in made.to_pylist():
            ids = group.ids
            if node.contributing is not None:
                ids = united(in_order[i] for i in values_[node.contributing])
            own = (_own(values_[name]) for name in node.made)
            yield Row((*(group.values[i] for i in self.kept), *own), group.time, ids)


def _place(row: Row) -> tuple[Any, ...]:
    """What a group's rows are sorted by: time, and where a row is a record, its id."""
    return (row.time is not None, row.time, sorted(row.ids))


def _array(rows: Sequence[tuple[Any, ...]], schema: StructType) -> pa.StructArray:
    kind = to_arrow_type(schema, timezone=ZONE, prefers_large_types=False)
    names = schema.fieldNames()
    return pa.array([dict(zip(names, map(_given, row), strict=True)) for row in rows], kind)


def _given(value: Any) -> Any:
    """A value as a user's function sees it."""
    match value:
        case Struct(fields=fields):
            return {name: _given(part) for name, part in fields}
        case tuple() | list():
            return [_given(part) for part in value]
    return value


def _own(value: Any) -> Any:
    """A value as the interpreter has it."""
    match value:
        case Mapping():
            return Struct(tuple((name, _own(part)) for name, part in value.items()))
        case list() | tuple():
            return tuple(_own(part) for part in value)
    return value
