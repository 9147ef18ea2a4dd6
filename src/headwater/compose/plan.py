"""`Plan`: what a composition compiles to, as a value: labels, sub-flows, runtimes, streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.compose.violations import Violation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.compose.cardinality import Cardinality
    from headwater.compose.composition import Composition
    from headwater.compose.labels import Label
    from headwater.compose.node import Runtime


@dataclass(frozen=True, slots=True)
class SubFlow:
    """A partition: connected nodes of one label and one runtime."""

    number: int
    label: Label
    runtime: Runtime
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """What is deployed and changed together: one query, one queue of jobs, or one static step.

    Connected sub-flows of operators are reducible to one query whatever their labels, so they are
    one unit; any other sub-flow is a unit by itself.
    """

    number: int
    runtime: Runtime
    subflows: tuple[int, ...]
    nodes: tuple[str, ...]
    idle: bool
    """Whether it only names streams that are there already, so that nothing is to be run."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """What leaves a sub-flow: a stream, or a static value."""

    stream: str
    node: str
    output: str | None
    label: Label
    start: int
    """The sub-flow that makes it."""
    ends: tuple[int, ...]
    """The sub-flows that read it; none where it is published for others."""
    stored: bool
    """Whether it is written to its named stream: it leaves its unit, or a sink publishes it."""


@dataclass(frozen=True, slots=True)
class RequiredJoin:
    """A one-to-one node that reads streams of different labels, and how they can be joined."""

    node: str
    port: str
    """The first whose label is another than that of the first port."""
    ports: Mapping[str, Label]
    choices: Mapping[str, str]
    """Each policy with the node to write, in YAML."""
    text: str

    def violation(self) -> Violation:
        """As a rule broken."""
        return Violation("join-required", self.text, node=self.node, port=self.port)


@dataclass(frozen=True, slots=True)
class Plan:
    """A composition, compiled."""

    composition: Composition
    labels: Mapping[str, Label]
    cardinalities: Mapping[str, Cardinality]
    """Of the nodes that streams come through; static ones and sources have none."""
    runtimes: Mapping[str, Runtime]
    promoted: tuple[str, ...]
    """Nodes of kind static that became streaming because they read a stream."""
    subflows: tuple[SubFlow, ...]
    units: tuple[Unit, ...]
    boundaries: tuple[Boundary, ...]
    joins: tuple[RequiredJoin, ...]

    @property
    def deployable(self) -> bool:
        """Whether no join is missing."""
        return not self.joins

    def to_text(self) -> str:
        """A table of nodes, then sub-flows and streams."""
        from headwater.compose.rendering import as_text

        return as_text(self)

    def to_mermaid(self) -> str:
        """A Mermaid flowchart: sub-flows as frames, labels on edges."""
        from headwater.compose.rendering import as_mermaid

        return as_mermaid(self)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        from headwater.compose.rendering import as_json

        return as_json(self)

    def __str__(self) -> str:
        return self.to_text()
