"""The methods that add a node of each kind, one after another, to a composition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from headwater.compose.kinds import KINDS
from headwater.compose.kinds.ends import EMPTY
from headwater.compose.violations import CompositionError

if TYPE_CHECKING:
    from fractions import Fraction

    from headwater.compose.composition import Composition
    from headwater.compose.node import Node

Inputs: TypeAlias = str | list[str] | tuple[str, ...] | Mapping[str, str]
Columns: TypeAlias = str | list[str] | tuple[str, ...]
Function: TypeAlias = str | Callable[..., Any]
Ratio: TypeAlias = "int | float | str | Fraction"
Bound: TypeAlias = str | Iterable[str] | Mapping[str, Any]


class Building(ABC):
    """Composing in Python: each method gives a new composition with a node more."""

    __slots__ = ()

    @abstractmethod
    def add(self, name: str, node: Node) -> Composition:
        """With one node more."""

    def _made(self, kind: str, given: dict[str, Any]) -> Composition:
        name = given.pop("name")
        del given["self"]
        try:
            node = KINDS[kind](**given)
        except CompositionError as error:
            raise CompositionError(v.at(node=name) for v in error.violations) from None
        return self.add(name, node)

    def source(
        self,
        name: str,
        inputs: Inputs = (),
        *,
        stream: str | None = None,
        format: str | None = None,
        path: str | None = None,
        options: Mapping[str, Any] = EMPTY,
        schema: str | None = None,
        event_time: str | None = None,
        watermark: str | None = None,
        id: Columns = (),
        keep: str | None = None,
        bind: Bound = EMPTY,
        rate: float | None = None,
    ) -> Composition:
        """A stream from outside (a generator): a named one, or what Spark reads."""
        return self._made("source", locals())

    def static(
        self,
        name: str,
        inputs: Inputs = (),
        *,
        value: Any = None,
        call: Function | None = None,
        format: str | None = None,
        path: str | None = None,
        options: Mapping[str, Any] = EMPTY,
        schema: str | None = None,
        static: Mapping[str, Any] = EMPTY,
        cardinality: Ratio | None = None,
        runtime: str | None = None,
    ) -> Composition:
        """A step of a pure workflow: run once, its result reused for every event."""
        return self._made("static", locals())

    def filter(
        self,
        name: str,
        inputs: Inputs,
        *,
        where: str,
        bind: Bound = EMPTY,
        cardinality: Ratio | None = None,
        runtime: str | None = None,
    ) -> Composition:
        """Events for which a condition holds."""
        return self._made("filter", locals())

    def map(
        self,
        name: str,
        inputs: Inputs,
        *,
        columns: Mapping[str, str],
        keep: Columns = (),
        cardinality: Ratio | None = None,
        runtime: str | None = None,
    ) -> Composition:
        """Other columns of the same events, by SQL expressions."""
        return self._made("map", locals())

    def function(
        self,
        name: str,
        inputs: Inputs,
        *,
        call: Function,
        schema: str,
        keep: Columns = (),
        batches: str | None = None,
        many: bool = False,
        static: Mapping[str, Any] = EMPTY,
        bind: Bound = EMPTY,
        takes: str | float | None = None,
        cardinality: Ratio | None = None,
        runtime: str | None = None,
    ) -> Composition:
        """What a Python function makes of each event; static inputs are repeated for each."""
        return self._made("function", locals())

    def service(
        self,
        name: str,
        inputs: Inputs,
        *,
        target: Any,
        response: str,
        request: Any = None,
        static: Mapping[str, Any] = EMPTY,
        concurrency: int = 8,
        retries: int = 2,
        timeout: str | float = 10.0,
        backoff: str | float = 0.2,
        bind: Bound = EMPTY,
        takes: str | float | None = None,
        cardinality: Ratio | None = None,
        runtime: str | None = None,
    ) -> Composition:
        """The answers of a service, called for each event; `.failures` are those without one."""
        return self._made("service", locals())

    def aggregate(
        self,
        name: str,
        inputs: Inputs,
        *,
        window: Mapping[str, Any],
        columns: Mapping[str, str],
        by: Columns = (),
        order_by: Columns = (),
        cardinality: Ratio | None = None,
        runtime: str | None = None,
    ) -> Composition:
        """One event for each window of events: so many, or a time; following or sliding."""
        return self._made("aggregate", locals())

    def merge(
        self,
        name: str,
        inputs: Inputs,
        *,
        bind: Bound = EMPTY,
        cardinality: Ratio | None = None,
        runtime: str | None = None,
    ) -> Composition:
        """The events of several streams, one after another as they arrive."""
        return self._made("merge", locals())

    def join(
        self,
        name: str,
        inputs: Inputs,
        *,
        policy: str | None = None,
        on: Columns = (),
        where: str | None = None,
        how: str = "inner",
        clock: str | None = None,
        left: Any = None,
        right: Any = None,
        within: str | None = None,
        left_on: str | None = None,
        right_on: str | None = None,
        size: Any = None,
        order_by: Any = (),
        cardinality: Ratio | None = None,
        runtime: str | None = None,
    ) -> Composition:
        """Pairs of events of two streams, or of a stream and a static table."""
        return self._made("join", locals())

    def match(
        self,
        name: str,
        inputs: Inputs,
        *,
        pattern: str,
        measures: Mapping[str, str],
        define: Mapping[str, str] = EMPTY,
        by: Columns = (),
        within: str | None = None,
        after_match: str = "skip past last row",
        select: str = "strict",
        order_by: Columns = (),
        cardinality: Ratio | None = None,
        runtime: str | None = None,
    ) -> Composition:
        """One event for each sequence of events that matches a pattern."""
        return self._made("match", locals())

    def sql(
        self,
        name: str,
        inputs: Inputs,
        *,
        query: str,
        schema: str | None = None,
        bind: Bound = EMPTY,
        many: bool = False,
        cardinality: Ratio | None = None,
        runtime: str | None = None,
    ) -> Composition:
        """Whatever a query makes of its inputs, each a table under its port's name."""
        return self._made("sql", locals())

    def job(
        self,
        name: str,
        inputs: Inputs,
        *,
        run: str | None = None,
        call: Function | None = None,
        spark: Function | None = None,
        steps: Mapping[str, Mapping[str, Any]] | None = None,
        schema: str | None = None,
        per: Any = "event",
        slots: int = 1,
        retries: int = 2,
        backoff: str | float = 1.0,
        timeout: str | float | None = None,
        static: Mapping[str, Any] = EMPTY,
        bind: Bound = EMPTY,
        takes: str | float | None = None,
        cardinality: Ratio | None = None,
        runtime: str | None = None,
    ) -> Composition:
        """A long task for each event or window, queued durably; `.failures` are those given up."""
        return self._made("job", locals())

    def sink(
        self,
        name: str,
        inputs: Inputs,
        *,
        stream: str | None = None,
        append: bool = False,
        alert: Mapping[str, Any] | None = None,
    ) -> Composition:
        """The end of a path: events published as a named stream, or sent as alerts."""
        return self._made("sink", locals())
