"""What every lowering is: one method per kind of node."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, cast

from headwater.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.flow.nodes import Node

T = TypeVar("T")


class Lowering(Generic[T]):
    """A visitor that makes, for each node, what this lowering makes of it; each node once.

    A subclass has a method `visit_<kind>(node, *inputs)` for each kind of node it can handle.
    Lowering a node once is not only thrift: a source's watermark must be one Spark node that
    all branches share, or the slowest branch would hold the watermark of the others back.
    """

    name: ClassVar[str]

    def __init__(self) -> None:
        self._done: dict[str, T] = {}
        self.observed: Mapping[str, str] = {}
        """Steps whose rows are counted as the query runs, with the names to count them under."""

    def lower(self, node: Node) -> T:
        """What this lowering makes of a node."""
        if node.step not in self._done:
            visit = getattr(self, f"visit_{node.kind}", None)
            if visit is None:
                raise UnsupportedError(
                    f"{node.site}: capture {self.name!r} can't handle the {node.kind} step "
                    f"{node.step!r}; it handles {', '.join(self.supported())}"
                )
            inputs = [self.lower(above) for above in node.inputs]
            made = cast("T", visit(node, *inputs))
            name = self.observed.get(node.step)
            self._done[node.step] = made if name is None else self.counted(made, name)
        return self._done[node.step]

    def counted(self, made: T, name: str) -> T:
        """The same, its rows counted by Spark as they pass."""
        raise NotImplementedError

    @classmethod
    def supported(cls) -> tuple[str, ...]:
        """The kinds of node that this lowering handles."""
        prefix = "visit_"
        return tuple(sorted(n.removeprefix(prefix) for n in dir(cls) if n.startswith(prefix)))
