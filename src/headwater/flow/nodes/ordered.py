"""Steps over rows in the order of their arrival, which Spark does not have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from headwater.flow.nodes.base import Node

if TYPE_CHECKING:
    from headwater.flow.expressions import Expr
    from headwater.ordered.patterns import Pattern


@dataclass(frozen=True, slots=True)
class Aggregated:
    """One aggregate over the rows of a window: a function of an expression, under a name."""

    name: str
    function: str
    argument: Expr | None
    column: Expr
    """The aggregate as it was written, from which Spark tells the type."""

    def __str__(self) -> str:
        return str(self.column)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered(Node):
    """A step for which arrival order counts."""

    order_by: tuple[Expr, ...] = ()

    def _by(self, keys: tuple[Expr, ...], word: str = "by") -> str:
        ordered = f" in order of {', '.join(map(str, self.order_by))}" if self.order_by else ""
        return (f" {word} {', '.join(map(str, keys))}" if keys else "") + ordered


@dataclass(frozen=True, slots=True, kw_only=True)
class CountWindow(Ordered):
    """One row for each window of so many rows of a key, sliding by so many."""

    kind: ClassVar[str] = "count_window"
    size: int
    slide: int
    by: tuple[Expr, ...] = ()
    columns: tuple[Aggregated, ...] = ()

    def describe(self) -> str:
        made = ", ".join(map(str, self.columns))
        return f"{self.size} rows sliding by {self.slide}{self._by(self.by)}: {made}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueWindow(Ordered):
    """One row for each window of rows whose values lie close together."""

    kind: ClassVar[str] = "value_window"
    size: float
    """In units of `on`; microseconds where it is a time."""
    slide: float
    on: Expr
    by: tuple[Expr, ...] = ()
    columns: tuple[Aggregated, ...] = ()

    def describe(self) -> str:
        made = ", ".join(map(str, self.columns))
        return f"{self.size:g} of {self.on} sliding by {self.slide:g}{self._by(self.by)}: {made}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BSort(Ordered):
    """The same rows, sorted as far as a buffer of so many rows allows."""

    kind: ClassVar[str] = "b_sort"
    slack: int
    on: tuple[Expr, ...]
    by: tuple[Expr, ...] = ()

    def describe(self) -> str:
        return f"on {', '.join(map(str, self.on))}, slack {self.slack}{self._by(self.by)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge(Node):
    """The rows of several inputs in one stream, in the order of their arrival."""

    kind: ClassVar[str] = "merge"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedJoin(Ordered):
    """Pairs of rows of two inputs, by what has arrived before.

    `order_by` is of the left side; the right has expressions of its own.
    """

    on: tuple[str, ...] = ()
    right_order_by: tuple[Expr, ...] = ()

    def _on(self) -> str:
        sides = (self.order_by, self.right_order_by)
        orders = " and ".join(", ".join(map(str, side)) for side in dict.fromkeys(sides) if side)
        return (f" on {', '.join(self.on)}" if self.on else "") + (
            f" in order of {orders}" if orders else ""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinLatest(OrderedJoin):
    """Each row of one input with the most recent row of the other."""

    kind: ClassVar[str] = "join_latest"
    clock: Literal["left", "right"] = "left"
    how: Literal["inner", "left_outer"] = "inner"

    def describe(self) -> str:
        return f"{self.how.replace('_', ' ')}, clocked by the {self.clock}{self._on()}"


@dataclass(frozen=True, slots=True)
class Last:
    """What a side's window of a join holds: the last rows, or those of the last microseconds."""

    rows: int | None = None
    time: int | None = None

    def __str__(self) -> str:
        return f"{self.rows} rows" if self.time is None else f"{self.time / 1_000_000:g} seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinLast(OrderedJoin):
    """Each row of either input with the rows in the other's window."""

    kind: ClassVar[str] = "join_last"
    left: Last
    right: Last

    def describe(self) -> str:
        return f"left window {self.left}, right window {self.right}{self._on()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinValue(OrderedJoin):
    """Each left row with the right rows whose value lies in a range above its own."""

    kind: ClassVar[str] = "join_value"
    left_on: Expr
    right_on: Expr
    size: float
    """In units of the values; microseconds where they are times."""

    def describe(self) -> str:
        between = f"{self.left_on} < {self.right_on} < {self.left_on} + {self.size:g}"
        return between + self._on()


@dataclass(frozen=True, slots=True, kw_only=True)
class Match(Ordered):
    """One row for each sequence of a key's rows that matches a pattern."""

    kind: ClassVar[str] = "match"
    pattern: Pattern
    by: tuple[Expr, ...] = ()

    def describe(self) -> str:
        defined = ", ".join(f"{name} as {text}" for name, text in self.pattern.define)
        made = ", ".join(f"{text} as {name}" for name, text in self.pattern.measures)
        within = self.pattern.within
        limit = "" if within is None else f" within {within / 1_000_000:g} seconds"
        how = f", {self.pattern.after_match}, {self.pattern.select}"
        return f"{self.pattern.text}{limit}{self._by(self.by)} where {defined}: {made}{how}"
