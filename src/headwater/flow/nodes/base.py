"""What every step is: a name, its inputs, and where it was written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator


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
