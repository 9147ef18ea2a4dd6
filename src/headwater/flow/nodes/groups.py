"""Steps that Spark has for several rows: unions, aggregates, joins, deduplications."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from headwater.flow.expressions import Expr
from headwater.flow.nodes.base import Node

if TYPE_CHECKING:
    from headwater.flow.windows import Session, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Union(Node):
    """The rows of both inputs, columns matched by position or by name."""

    kind: ClassVar[str] = "union"
    by_name: bool = False
    allow_missing: bool = False

    def describe(self) -> str:
        return "by name" if self.by_name else "by position"


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate(Node):
    """One row for each group of rows with equal keys, often a window among them."""

    kind: ClassVar[str] = "aggregate"
    keys: tuple[Expr, ...]
    columns: tuple[Expr, ...]
    window: Window | Session | None = None
    concise: bool = False
    """Whether only the rows that have the least or greatest value count as provenance."""

    def describe(self) -> str:
        keys = ", ".join(map(str, self.keys)) or "all rows"
        concise = ", concise" if self.concise else ""
        return f"by {keys}: {', '.join(map(str, self.columns))}{concise}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Join(Node):
    """Pairs of rows of two inputs; `on` is a condition, or names that both have.

    The aliases keep columns of one name apart where the user gave none.
    """

    kind: ClassVar[str] = "join"
    on: Expr | tuple[str, ...]
    how: Literal["inner", "left_outer"]
    left_alias: str | None = None
    right_alias: str | None = None
    range: int | None = 0
    """For two streams: how far apart, in microseconds, the times of a pair may be, if bounded."""
    waits: tuple[int, int] = (0, 0)
    """For two streams: how long, in milliseconds, the left and the right row wait for partners."""

    def describe(self) -> str:
        on = str(self.on) if isinstance(self.on, Expr) else ", ".join(self.on)
        return f"{self.how.replace('_', ' ')} on {on}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deduplicate(Node):
    """The first row of those with equal values in some columns (all of them when None)."""

    kind: ClassVar[str] = "deduplicate"
    columns: tuple[str, ...] | None
    within_watermark: bool = False

    def describe(self) -> str:
        columns = ", ".join(self.columns) if self.columns else "all columns"
        return columns + (" within the watermark" if self.within_watermark else "")
