"""Which of a source's records get past the first filters: the others can reach nothing."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from headwater.flow import nodes
from headwater.flow.determinism import why_not

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def wanted_first(source: nodes.Source, sinks: Iterable[nodes.Node]) -> Column | None:
    """The condition that a record meets if some path lets it in; none where a path takes all."""
    wanted = F.lit(False)
    for conditions in _along_paths(source, sinks):
        if not conditions:
            return None
        wanted = wanted | reduce(Column.__and__, conditions)
    return wanted


def _along_paths(source: nodes.Source, sinks: Iterable[nodes.Node]) -> Iterator[list[Column]]:
    """For each step that reads a source, the conditions on the record that come first."""
    steps = {node.step: node for sink in sinks for node in sink.upstream()}
    readers: dict[str, list[nodes.Node]] = {}
    for node in steps.values():
        for above in node.inputs:
            readers.setdefault(above.step, []).append(node)

    def along(step: str) -> Iterator[list[Column]]:
        for node in readers.get(step, ()):
            if isinstance(node, nodes.Filter) and why_not(node) is None:
                for further in along(node.step):
                    yield [node.condition.column, *further]
            else:
                yield []

    return along(source.step)
