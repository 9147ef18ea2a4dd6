"""Steps over rows in the order of their arrival: count windows, value windows, b-sort."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headwater.flow import nodes
from headwater.flow.terms import Ref, Term, unaliased
from headwater.testing.arrival import Arrival, InOrder, Key, ascending, measure, values_of
from headwater.testing.evaluate import evaluate
from headwater.testing.matching import Match
from headwater.testing.ordered_aggregates import aggregated
from headwater.testing.rows import Column, InterpreterError, Place, Row, Schema, latest, united
from headwater.testing.selecting import output_column

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.testing.operators import Counters, Operator


def ordered_step(node: nodes.Ordered, inputs: Sequence[Operator], counters: Counters) -> Operator:
    """The operator of a step of one input."""
    match node:
        case nodes.CountWindow():
            return CountWindow(node, inputs, counters)
        case nodes.ValueWindow():
            return ValueWindow(node, inputs, counters)
        case nodes.BSort():
            return BSort(node, inputs, counters)
        case nodes.Match():
            return Match(node, inputs, counters)
    raise InterpreterError(f"the reference interpreter does not know {node.kind} steps")


class Windowed(InOrder):
    """What windows over arrival order share: the keys and the aggregates as columns."""

    node: nodes.CountWindow | nodes.ValueWindow

    def __init__(
        self,
        node: nodes.CountWindow | nodes.ValueWindow,
        inputs: Sequence[Operator],
        counters: Counters,
    ) -> None:
        super().__init__(node, inputs, counters)
        self.input = inputs[0].schema
        keys = (fresh(output_column(expr.term, self.input)) for expr in node.by)
        self.schema = Schema((*keys, *(self._column(made) for made in node.columns)))

    def _column(self, made: nodes.Aggregated) -> Column:
        """An aggregate's column; the latest event time of a window is an event time again."""
        if made.function == "max" and made.argument is not None:
            term = unaliased(made.argument.term)
            if isinstance(term, Ref):
                return Column(made.name, mark=output_column(term, self.input).mark)
        return Column(made.name)

    def keys(self, side: int) -> Sequence[Term]:
        return [expr.term for expr in self.node.by]

    def needs(self, columns: set[int]) -> Sequence[set[int]]:
        arguments = [made.argument.term for made in self.node.columns if made.argument]
        on = [self.node.on.term] if isinstance(self.node, nodes.ValueWindow) else []
        return [self.reads(0, [*arguments, *on])]

    def result(self, key: Key, rows: Sequence[Row], place: Place) -> Row:
        """The result of a window."""
        made = (aggregated(column, self.input, rows) for column in self.node.columns)
        return Row((*key, *made), latest(row.time for row in rows), united(rows), place)


def fresh(column: Column) -> Column:
    """A column as an ordered step gives it on: another one, with the mark kept."""
    return column.renamed(column.name)


class CountWindow(Windowed):
    """Window w of a key holds its rows from w·slide on, as many as its size."""

    node: nodes.CountWindow

    def __init__(
        self, node: nodes.CountWindow, inputs: Sequence[Operator], counters: Counters
    ) -> None:
        super().__init__(node, inputs, counters)
        self.arrived: dict[Key, list[Row]] = {}

    def take(self, arrival: Arrival) -> Iterator[Row]:
        rows = self.arrived.setdefault(arrival.key, [])
        rows.append(arrival.row)
        start = len(rows) - self.node.size
        if start >= 0 and start % self.node.slide == 0:
            yield self.result(arrival.key, rows[start:], arrival.row.place)


@dataclass(slots=True)
class _Window:
    """A value window; `previous` is the start of the window that was opened before it."""

    number: int
    start: Any
    previous: Any
    rows: list[Row]
    is_open: bool = True


class ValueWindow(Windowed):
    """Windows that open with a row and close with a row whose value is too far above."""

    node: nodes.ValueWindow

    def __init__(
        self, node: nodes.ValueWindow, inputs: Sequence[Operator], counters: Counters
    ) -> None:
        super().__init__(node, inputs, counters)
        self.windows: dict[Key, list[_Window]] = {}

    @property
    def depth(self) -> int:
        return super().depth + 1

    def take(self, arrival: Arrival) -> Iterator[Row]:
        value = measure(evaluate(self.node.on.term, self.input, arrival.row))
        if value is None:
            return
        size, slide = self.node.size, self.node.slide
        windows = self.windows.setdefault(arrival.key, [])
        for window in windows:
            if window.is_open and value > window.start + size:
                window.is_open = False
                place = (*arrival.row.place, window.number)
                yield self.result(arrival.key, window.rows, place)
        for window in windows:
            if window.is_open and (window.number == 0 or value > window.previous + slide):
                window.rows.append(arrival.row)
        if not windows:
            windows.append(_Window(0, value, None, [arrival.row]))
        elif value > windows[-1].start + slide:
            number, previous = len(windows), windows[-1].start
            windows.append(_Window(number, value, previous, [arrival.row]))


@dataclass(slots=True)
class _Buffer:
    """The rows of a key that wait to leave, each with what they are sorted by."""

    arrived: int = 0
    rows: list[tuple[Any, int, Row]] = field(default_factory=list)


class BSort(InOrder):
    """Each row goes into its key's buffer; beyond the slack the least leaves."""

    node: nodes.BSort

    def __init__(self, node: nodes.BSort, inputs: Sequence[Operator], counters: Counters) -> None:
        super().__init__(node, inputs, counters)
        self.input = inputs[0].schema
        self.shown = self.input.visible()
        self.schema = Schema(tuple(fresh(self.input.columns[i]) for i in self.shown))
        self.buffers: dict[Key, _Buffer] = {}

    def keys(self, side: int) -> Sequence[Term]:
        return [expr.term for expr in self.node.by]

    def needs(self, columns: set[int]) -> Sequence[set[int]]:
        passing = {self.shown[i] for i in columns}
        return [passing | self.reads(0, [expr.term for expr in self.node.on])]

    def take(self, arrival: Arrival) -> Iterator[Row]:
        buffer = self.buffers.setdefault(arrival.key, _Buffer())
        values = values_of([expr.term for expr in self.node.on], self.input, arrival.row)
        buffer.rows.append((tuple(map(ascending, values)), buffer.arrived, arrival.row))
        buffer.arrived += 1
        if len(buffer.rows) > self.node.slack:
            # No two have one number, so that rows themselves are never compared.
            least = min(buffer.rows)
            buffer.rows.remove(least)
            leaving = least[2]
            yield leaving.with_values(leaving.values[i] for i in self.shown).at(*arrival.row.place)
