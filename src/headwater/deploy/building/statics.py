"""Static nodes: run once, their values kept, reused for every event and every later version."""

from __future__ import annotations

import hashlib
import json
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.compose.frozen import thawed
from headwater.compose.graph import Graph
from headwater.compose.kinds import Function, Static
from headwater.errors import FlowError
from headwater.streams.files import write_whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headwater.compose.composition import Composition
    from headwater.compose.plan import Plan
    from headwater.deploy.building.calls import Calls


@dataclass(frozen=True, slots=True)
class Value:
    """What a static node gives: a Python value, or a table that Spark reads."""

    value: Any
    is_table: bool = False


class Statics:
    """The static nodes of a composition, each run when it is first asked for.

    A value is kept under what it was made of, the node with all that it reads: a restart and the
    next version find it there, unless something of that has changed.
    """

    def __init__(self, plan: Plan, calls: Calls, folder: Path, spark: SparkSession) -> None:
        self._composition: Composition = plan.composition
        self._plan, self._calls, self._folder, self._spark = plan, calls, folder, spark
        self._graph = Graph(self._composition)
        self._known: dict[str, Value] = {}
        self.ran: list[str] = []
        """Nodes that were run, as nothing was kept of them."""

    def is_static(self, name: str) -> bool:
        """Whether a node is one of them."""
        return self._plan.labels[name].is_static

    def print_of(self, name: str) -> str:
        """What a node's value was made of, in short."""
        node = self._composition[name]
        told: list[Any] = [node.kind, node.written()]
        if (call := getattr(node, "call", None)) is not None:
            told.append(self._calls.content(call))
        if (path := getattr(node, "path", None)) is not None:
            told.append(_state(path))
        told += [self.print_of(edge.source) for edge in self._graph.into[name]]
        return hashlib.sha256(json.dumps(told, default=str).encode()).hexdigest()

    def value(self, name: str) -> Value:
        """A node's value."""
        if name not in self._known:
            self._known[name] = self._value(name)
        return self._known[name]

    def _value(self, name: str) -> Value:
        node = self._composition[name]
        if isinstance(node, Static) and node.value is not None:
            return Value(thawed(node.value))
        if isinstance(node, Static) and node.format is not None:
            return Value(self._table(name, node), is_table=True)
        if not isinstance(node, Static | Function) or node.call is None:
            raise FlowError(
                f"node {name!r} is static as nothing streams into it, and a {node.kind} can't run "
                "without a stream; read a source"
            )
        file = self._folder / f"{name}-{self.print_of(name)[:16]}.pickle"
        if file.exists():
            return Value(pickle.loads(file.read_bytes()))
        inputs = {edge.port.name: self.value(edge.source) for edge in self._graph.into[name]}
        given = {port: self._plain(each) for port, each in inputs.items()}
        function = self._calls.function(node.call, name)
        try:
            made = function(**given, **thawed(node.static))
        except Exception as error:
            raise FlowError(
                f"static node {name!r}: {node.call} failed: {type(error).__name__}: {error}"
            ) from error
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            write_whole(file, pickle.dumps(made))
        except (pickle.PickleError, TypeError, AttributeError) as error:
            raise FlowError(
                f"static node {name!r}: what {node.call} gives can't be kept: {error}"
            ) from error
        self.ran.append(name)
        return Value(made)

    def _table(self, name: str, node: Static) -> DataFrame:
        reader = self._spark.read.format(str(node.format)).options(**dict(node.options))
        if node.schema is not None:
            reader = reader.schema(node.schema)
        try:
            return reader.load(node.path)
        except Exception as error:
            from headwater.spark_errors import one_line

            raise FlowError(f"static node {name!r}: {one_line(error)}") from error

    @staticmethod
    def _plain(given: Value) -> Any:
        """As a function takes it: a table as Arrow."""
        return given.value.toArrow() if given.is_table else given.value


def _state(path: str) -> list[Any]:
    """What tells whether files have changed."""
    place = Path(path)
    files = sorted(place.rglob("*")) if place.is_dir() else [place]
    return [[str(f), s.st_size, s.st_mtime_ns] for f in files if f.is_file() and (s := f.stat())]
