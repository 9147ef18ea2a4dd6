"""Where rows come from and where they go: sources, static sides and sinks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from headwater.flow.nodes.base import Node

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

Keep = Literal["all", "contributing", "alive", "none"]


@dataclass(frozen=True, slots=True)
class Identity:
    """How a source's records get their ids.

    `column`: one integer column, as it is. `hash`: xxhash64 of the named columns. `content`:
    xxhash64 of all columns. `position`: the file and the row in it. `offset`: a message's place in
    its topics.
    """

    how: Literal["column", "hash", "content", "position", "offset"]
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
        where = f"{self.format} {self.path}" if self.path else self.format or "dataframe"
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
