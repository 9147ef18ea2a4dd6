"""A processing flow: operations connected by the ids of their streams."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from headwater.errors import FlowError, UnknownStream

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.saf.operations import Operation


class Flow:
    """Operations in the order of their ids; a stream is made by one of them, or is a source.

    >>> from headwater.saf import Filter, Map
    >>> flow = Flow([Map(id=1, input=1, output=2), Filter(id=2, input=2, output=3)])
    >>> flow.sources, flow.results
    (frozenset({1}), frozenset({3}))
    """

    def __init__(self, operations: Iterable[Operation]) -> None:
        self.operations = tuple(sorted(operations, key=lambda operation: operation.id))
        self._makers: dict[int, Operation] = {}
        ids = set[int]()
        for operation in self.operations:
            if operation.id in ids:
                raise FlowError(f"two operations have the id {operation.id}; ids must differ")
            ids.add(operation.id)
            for stream in operation.outputs:
                if (other := self._makers.setdefault(stream, operation)) is not operation:
                    raise FlowError(
                        f"operations {other.id} and {operation.id} both make stream {stream}; "
                        "give one of them another output"
                    )
        read = {stream for operation in self.operations for stream in operation.inputs}
        self.streams = frozenset(read | self._makers.keys())
        self.sources = frozenset(read - self._makers.keys())
        """The streams that no operation makes."""
        self.results = frozenset(self._makers.keys() - read)
        """The streams that no operation reads."""
        self._refuse_cycles()

    def maker(self, stream: int) -> Operation | None:
        """The operation that makes a stream; None for a source."""
        return self._makers.get(stream)

    def known(self, streams: Iterable[int], what: str) -> frozenset[int]:
        """These streams, which must be in the flow; `what` names them in the error."""
        asked = frozenset(streams)
        if unknown := sorted(asked - self.streams, key=str):
            has = ", ".join(str(stream) for stream in sorted(self.streams))
            raise UnknownStream(f"{what}: no stream {unknown[0]!r} in the flow; it has: {has}")
        return asked

    def between(
        self, starts: frozenset[int], ends: Iterable[int], what: str
    ) -> tuple[Operation, ...]:
        """The operations that lead from `starts` to `ends`, which must come from nothing else."""
        found = set[int]()
        waiting = [stream for stream in ends if stream not in starts]
        while waiting:
            stream = waiting.pop()
            operation = self.maker(stream)
            if operation is None:
                raise FlowError(f"no operation makes stream {stream}, and it is not in {what}")
            if operation.id not in found:
                found.add(operation.id)
                waiting += [each for each in operation.inputs if each not in starts]
        return tuple(operation for operation in self.operations if operation.id in found)

    def _refuse_cycles(self) -> None:
        graph = {stream: maker.inputs for stream, maker in self._makers.items()}
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            path = " → ".join(str(stream) for stream in error.args[1])
            raise FlowError(f"the flow has a cycle of streams: {path}") from error
