"""What a frame is: rows of a step, in columns that Spark knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.flow.references import Attribute, resolve

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headwater.flow import expressions as ex
    from headwater.flow import nodes
    from headwater.flow.flow import Flow


class Shaped:
    """A step of a flow with its columns, as Spark sees them without provenance."""

    __slots__ = ("_flow", "_node")

    def __init__(self, flow: Flow, node: nodes.Node) -> None:
        self._flow = flow
        self._node = node

    @property
    def step(self) -> str:
        """The stable name of the step that makes these rows."""
        return self._node.step

    @property
    def flow(self) -> Flow:
        """The flow that this frame belongs to."""
        return self._flow

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._df.columns)

    @property
    def schema(self) -> StructType:
        """The schema as Spark has it."""
        return self._df.schema

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        """The names and types of the columns."""
        return list(self._df.dtypes)

    @property
    def isStreaming(self) -> bool:
        """Whether the rows keep coming."""
        return bool(self._df.isStreaming)

    @property
    def sparkSession(self) -> SparkSession:
        """The session that the flow runs in."""
        return self._flow.spark

    def printSchema(self, level: int | None = None) -> None:
        """Print the schema as a tree."""
        self._df.printSchema(level)

    def explain(self, extended: bool | str | None = None, mode: str | None = None) -> None:
        """Print the steps up to here; with `extended` or `mode`, Spark's plan as well."""
        print(self._flow.describe(self._node))
        if extended is not None or mode is not None:
            self._df.explain(extended, mode)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.columns]

    @property
    def _df(self) -> DataFrame:
        return self._flow._plain.lower(self._node)

    @property
    def _attributes(self) -> tuple[Attribute, ...]:
        return self._flow._attributes(self._node)

    def _resolved(self, expr: ex.Expr, method: str) -> ex.Expr:
        if not expr.has_references:
            return expr
        return resolve(expr, method, [(self.step, self._attributes)])

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}: {kind}" for name, kind in self.dtypes)
        return f"Frame[{self.step}: {fields}]"
