"""Steps that take one row at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from headwater.flow.nodes.base import Node

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.types import StructType

    from headwater.flow.expressions import Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter(Node):
    """Rows for which a condition holds."""

    kind: ClassVar[str] = "filter"
    condition: Expr

    def describe(self) -> str:
        return str(self.condition)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project(Node):
    """Other columns of the same rows (`select`)."""

    kind: ClassVar[str] = "project"
    columns: tuple[Expr, ...]

    def describe(self) -> str:
        return ", ".join(map(str, self.columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class WithColumns(Node):
    """Columns added or replaced."""

    kind: ClassVar[str] = "with_columns"
    columns: tuple[tuple[str, Expr], ...]

    def describe(self) -> str:
        return ", ".join(f"{name} = {expr}" for name, expr in self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename(Node):
    """Columns under other names."""

    kind: ClassVar[str] = "rename"
    names: tuple[tuple[str, str], ...]

    def describe(self) -> str:
        return ", ".join(f"{old} as {new}" for old, new in self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop(Node):
    """Columns left out."""

    kind: ClassVar[str] = "drop"
    columns: tuple[Expr, ...]

    def describe(self) -> str:
        return ", ".join(map(str, self.columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias(Node):
    """The same rows under a name for SQL: `alias("l")` makes `l.speed` mean theirs."""

    kind: ClassVar[str] = "alias"
    name: str

    def describe(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark(Node):
    """The event-time column and how long to wait for late rows."""

    kind: ClassVar[str] = "watermark"
    column: str
    delay: str

    def describe(self) -> str:
        return f"{self.column} - {self.delay}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explode(Node):
    """One row for each element of an array, in a `select` list.

    `columns[at]` is the generator; `names` are the columns that it makes.
    """

    kind: ClassVar[str] = "explode"
    columns: tuple[Expr, ...]
    at: int
    function: Literal["explode", "explode_outer", "posexplode", "posexplode_outer"]
    names: tuple[str, ...]

    def describe(self) -> str:
        return ", ".join(map(str, self.columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatMap(Node):
    """One row to many by a Python function of the row; `keep` columns pass beside them."""

    kind: ClassVar[str] = "flat_map"
    function: Callable[[Any], Any]
    schema: StructType = field(hash=False)
    keep: tuple[str, ...] = ()

    def describe(self) -> str:
        kept = f", keep {', '.join(self.keep)}" if self.keep else ""
        return f"{self.function.__name__} -> {', '.join(self.schema.fieldNames())}{kept}"
