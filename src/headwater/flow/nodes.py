"""The nodes of a flow: one small frozen class per kind of step.

A node says what its step does, never how Spark does it: that is a lowering's part. `inputs`
are the nodes upstream, `step` is the step's stable name, `site` the user's file and line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from headwater.flow.expressions import Expr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from headwater.flow.windows import Session, Window

Keep = Literal["all", "contributing", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A step of a flow."""

    kind: ClassVar[str] = "node"
    step: str
    site: str = field(default="", compare=False)
    inputs: tuple[Node, ...] = ()

    def describe(self) -> str:
        """The step's parameters in one line."""
        return ""

    @property
    def input(self) -> Node:
        """The only input."""
        (only,) = self.inputs
        return only

    def upstream(self) -> Iterator[Node]:
        """This node and every one above it, each once, inputs first."""
        seen: set[str] = set()

        def visit(node: Node) -> Iterator[Node]:
            if node.step in seen:
                return
            seen.add(node.step)
            for above in node.inputs:
                yield from visit(above)
            yield node

        yield from visit(self)


@dataclass(frozen=True, slots=True)
class Identity:
    """How a source's records get their ids.

    `column`: one integer column, as it is. `hash`: xxhash64 of the named columns. `content`:
    xxhash64 of all columns. `position`: the file and the row in it.
    """

    how: Literal["column", "hash", "content", "position"]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Node):
    """Records from outside, traced by id."""

    kind: ClassVar[str] = "source"
    schema: StructType = field(hash=False)
    streaming: bool
    identity: Identity
    event_time: str | None = None
    watermark: str | None = None
    keep: Keep = "none"
    format: str | None = None
    path: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    df: DataFrame | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The source's name: a source's step is called what the source is."""
        return self.step

    def describe(self) -> str:
        where = f"{self.format} {self.path}" if self.path else "dataframe"
        id_columns = ", ".join(self.identity.columns) or self.identity.how
        late = f", watermark {self.event_time} - {self.watermark}" if self.watermark else ""
        return f"{where}, id {id_columns}{late}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Static(Node):
    """A DataFrame that is joined but not traced."""

    kind: ClassVar[str] = "static"
    df: DataFrame = field(compare=False, repr=False, hash=False)

    def describe(self) -> str:
        return ", ".join(self.df.columns)


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

    def describe(self) -> str:
        keys = ", ".join(map(str, self.keys)) or "all rows"
        return f"by {keys}: {', '.join(map(str, self.columns))}"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink(Node):
    """Results: what provenance is asked about."""

    kind: ClassVar[str] = "sink"
    write: Any = field(default=None, compare=False, hash=False)

    @property
    def name(self) -> str:
        """The sink's name: a sink's step is called what the sink is."""
        return self.step

    def describe(self) -> str:
        return "also written by the user's own writer" if self.write is not None else ""


KINDS: tuple[type[Node], ...] = (
    Source,
    Static,
    Filter,
    Project,
    WithColumns,
    Rename,
    Drop,
    Alias,
    Watermark,
    Explode,
    FlatMap,
    Union,
    Aggregate,
    Join,
    Deduplicate,
    Sink,
)
"""Every kind of node, in the order of the generated operator table."""
