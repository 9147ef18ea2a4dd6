"""Steps that run code of the user's own: over batches, over groups, at a service."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from headwater.flow.nodes.base import Node
from headwater.flow.nodes.groups import Aggregate

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.flow.expressions import Expr

ANSWER, REASON, ATTEMPTS = "answer", "reason", "attempts"
"""The fields of what came of a call."""


def name_of(function: object) -> str:
    """What a function is called: a partial or an object that can be called has no name."""
    return str(getattr(function, "__name__", type(function).__name__))


@dataclass(frozen=True, slots=True, kw_only=True)
class Map(Node):
    """One row to one by a Python function of batches; `keep` columns pass beside them."""

    kind: ClassVar[str] = "map"
    function: Callable[[Any], Any]
    schema: StructType = field(hash=False)
    given: StructType = field(hash=False)
    """The columns that the function gets."""
    takes: Literal["pandas", "batch", "table"] = "pandas"
    keep: tuple[str, ...] = ()

    def describe(self) -> str:
        kept = f", keep {', '.join(self.keep)}" if self.keep else ""
        return f"{name_of(self.function)} -> {', '.join(self.schema.fieldNames())}{kept}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service(Node):
    """One call of a service for each row, made once for all sinks: its answer, or why not."""

    kind: ClassVar[str] = "service"
    target: str | Callable[..., Any]
    """A URL, or a function."""
    request: tuple[tuple[str, Expr], ...]
    response: StructType = field(hash=False)
    column: str
    """The column that says what came of the call."""
    static: tuple[tuple[str, Any], ...] = field(default=(), hash=False, repr=False)
    concurrency: int = 8
    retries: int = 2
    timeout: float = 10.0
    backoff: float = 0.2

    @property
    def outcome(self) -> StructType:
        """What came of a call: the answer, or the reason why there is none."""
        return StructType(
            [
                StructField(ANSWER, self.response),
                StructField(REASON, StringType()),
                StructField(ATTEMPTS, IntegerType()),
            ]
        )

    def describe(self) -> str:
        called = f"POST {_shown(self.target)} " if isinstance(self.target, str) else ""
        called = called or name_of(self.target)
        given = ", ".join(f"{name} = {e}" if e.name != name else name for name, e in self.request)
        static = f"; {', '.join(name for name, _ in self.static)}" if self.static else ""
        return f"{called}({given}{static}) -> {', '.join(self.response.fieldNames())}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFunction(Aggregate):
    """The rows that a Python function makes of each group of rows with equal keys.

    For all that says when a group is complete it is an aggregate, without columns of its own.
    """

    kind: ClassVar[str] = "group_function"
    columns: tuple[Expr, ...] = ()
    function: Callable[..., Any]
    schema: StructType = field(hash=False)
    """What the function makes, the positions of contributing rows among it."""
    given: StructType = field(hash=False)
    """The columns that the function gets."""
    with_key: bool = False
    contributing: str | None = None
    keep: tuple[str, ...] = ()
    """Keys that pass beside what the function makes."""

    @property
    def made(self) -> tuple[str, ...]:
        """The function's columns that are part of the result."""
        return tuple(name for name in self.schema.fieldNames() if name != self.contributing)

    def describe(self) -> str:
        keys = ", ".join(map(str, self.keys)) or "all rows"
        kept = f", keep {', '.join(self.keep)}" if self.keep else ""
        said = f", contributing {self.contributing}" if self.contributing else ""
        made = ", ".join(self.made)
        return f"by {keys}: {name_of(self.function)} -> {made}{kept}{said}"


def _shown(url: str) -> str:
    """A URL without what may be secret in it."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"
