"""What is wrong with a composition: each violation has its place, its rule and what to do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headwater.errors import FlowError
from headwater.spelling import guess

if TYPE_CHECKING:
    from collections.abc import Iterable

RULES = {
    "file": "the file can be read, as YAML or JSON",
    "shape": "it has `flow`, a name, and `nodes`, names with one kind each",
    "name": "a name starts with a letter, then letters, digits, `_` and `-`; none is given twice",
    "kind": "a node has one kind, of those there are",
    "key": "a kind has only its own keys, and those that it needs",
    "value": "a key's value has the right type, and keys don't contradict each other",
    "unknown-node": "`from` names a node of the flow, and an output that it has",
    "ports": "a node has as many ports as its kind takes, under the right names, each once",
    "cycle": "no node depends on itself",
    "sink-feeds": "a sink ends its path: nothing reads it",
    "source-to-sink": "between a source and a sink is a streaming node",
    "stream-into-source": "a source takes static inputs only: the transition into a stream",
    "unread-source": "something reads a source",
    "needs-stream": "a stream operator and a sink read a stream, not what is computed once",
    "static-input": "a static input goes only where it can be repeated for each event",
    "policy": "a join of two streams has a policy, one with a static table has none",
    "static-reads-stream": "what is declared static reads no stream",
    "runtime": "a forced runtime can run the kind",
    "cardinality": "a declared cardinality is one that the kind can have",
    "stream-name": "two sinks don't publish one stream, and none publishes what the flow reads",
    "tables": "an SQL query reads its ports, all of them and nothing else",
    "join-required": "streams of different labels are joined before they reach a one-to-one node",
    "columns": "merged streams have the same columns, and columns that are named exist",
    "property": "a property's path and type agree with the schema of its stream",
}
"""Every rule's name and what it asks."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong: where, against which rule, and what to do about it."""

    rule: str
    text: str
    node: str | None = None
    port: str | None = None
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        node = f"node {self.node!r}" if self.node is not None else ""
        port = f"port {self.port!r}" if self.port is not None else ""
        where = ", ".join(part for part in (node, port) if part)
        return f"{': '.join(p for p in (place, where, self.text) if p)} [{self.rule}]"

    def at(self, **place: Any) -> Violation:
        """The same violation with more of its place known; what is known stays."""
        unknown = {name: value for name, value in place.items() if getattr(self, name) is None}
        return replace(self, **unknown)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        names = ("rule", "node", "port", "file", "line", "text")
        return {name: getattr(self, name) for name in names}


class CompositionError(FlowError):
    """A composition that breaks rules; `violations` has all of them."""

    def __init__(self, violations: Iterable[Violation]) -> None:
        self.violations = tuple(violations)
        super().__init__("\n".join(map(str, self.violations)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.violations,)


def a(kind: str) -> str:
    """A kind with its article.

    >>> a("aggregate"), a("filter"), a("sql")
    ('an aggregate', 'a filter', 'an sql')
    """
    return f"{'an' if kind in ('aggregate', 'sql') else 'a'} {kind}"


def nearest(name: Any, known: Iterable[str]) -> str:
    """The end of a message about a wrong name: the one that was meant, or those there are.

    >>> nearest("wher", ["from", "where"])
    "; did you mean 'where'?"
    >>> nearest("x", ["from", "where"])
    '; there are from, where'
    """
    there = list(known)
    if meant := guess(name, there, before="; "):
        return meant
    shown = ", ".join(there[:12]) + (", …" if len(there) > 12 else "")
    return f"; there are {shown}" if there else ""
