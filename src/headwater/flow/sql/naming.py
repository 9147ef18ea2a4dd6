"""The names that FROM may hold: frames by keyword, a query's WITH, sources and named steps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from headwater.errors import FlowError
from headwater.flow import nodes
from headwater.flow.frame import Frame
from headwater.spelling import guess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sqlglot import exp

    from headwater.flow.flow import Flow
    from headwater.flow.sql.parsing import Statement

Rows = Frame | DataFrame
_NUMBERED = re.compile(rf"({'|'.join(kind.kind for kind in nodes.KINDS)})-\d+")


class Names:
    """What each name in FROM stands for, innermost first."""

    def __init__(self, flow: Flow, given: Mapping[str, Any]) -> None:
        for name, frame in given.items():
            _check(flow, name, frame)
        self._flow = flow
        self._made = {name: _always(frame) for name, frame in given.items()}

    def with_one(self, name: str, make: Callable[[], Frame]) -> Names:
        """These names and one more, whose rows are made when they are first asked for."""
        made: list[Frame] = []

        def once() -> Frame:
            if not made:
                made.append(make())
            return made[0]

        inner = Names(self._flow, {})
        inner._made = {name: once, **{n: m for n, m in self._made.items() if n != name}}
        return inner

    def find(self, statement: Statement, table: exp.Table) -> Rows:
        """The rows that a table's name stands for."""
        name = ".".join(part.name for part in table.parts)
        steps = self._steps()
        for known in (self._made, steps):
            found = _of_name(name, known)
            if found is not None:
                return known[found]()
        raise statement.wrong(table, _unknown(name, [*self._made, *filter(_is_named, steps)]))

    def _steps(self) -> dict[str, Callable[[], Rows]]:
        steps = [n for n in self._flow._steps.values() if not isinstance(n, nodes.Sink)]
        return {node.step: _always(Frame(self._flow, node)) for node in steps}


def _always(rows: Rows) -> Callable[[], Rows]:
    return lambda: rows


def _check(flow: Flow, name: str, frame: Any) -> None:
    if not isinstance(frame, Frame | DataFrame):
        kind = type(frame).__name__
        raise FlowError(f"sql: {name}= takes a headwater.Frame or a DataFrame, not {kind}")
    if isinstance(frame, Frame) and frame.flow is not flow:
        raise FlowError(
            f"sql: {name}= is step {frame.step!r} of flow {frame.flow.name!r}, not of {flow.name!r}"
        )


def _of_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that is meant: the very same, or the only one that differs in case."""
    alike = [other for other in known if other.casefold() == name.casefold()]
    return name if name in alike else alike[0] if len(alike) == 1 else None


def _is_named(step: str) -> bool:
    return _NUMBERED.fullmatch(step) is None


def _unknown(name: str, known: list[str]) -> str:
    hint = guess(name, known, after=" ")
    there = f"FROM can name {', '.join(known)}" if known else "the flow has no source yet"
    return f"there are no rows called {name!r}; {hint}{there}"
