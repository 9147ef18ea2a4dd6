"""Everything that can be said against a composition before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.compose.graph import Graph
from headwater.compose.joins import required_joins
from headwater.compose.labels import label
from headwater.compose.rules import violations
from headwater.compose.types.inference import Evidence, Judged, infer

if TYPE_CHECKING:
    from headwater.compose.composition import Composition
    from headwater.compose.violations import Violation


def check(composition: Composition, evidence: Evidence | None = None) -> tuple[Violation, ...]:
    """Every rule that is broken, missing joins and invalid columns among them."""
    return examined(composition, evidence)[0]


def examined(
    composition: Composition, evidence: Evidence | None = None
) -> tuple[tuple[Violation, ...], tuple[Judged, ...]]:
    """Every rule that is broken, and what is known of each column and property that is named.

    `evidence` gives the last event of a named stream: an example, where nothing proves anything.
    """
    graph = Graph(composition)
    labels = label(graph)
    inferred = infer(graph, labels, evidence)
    origin = composition.origin.of
    found = violations(graph, labels)
    found += [origin(join.violation()) for join in required_joins(graph, labels)]
    found += [origin(each) for each in inferred.violations()]
    places = {name: at for at, name in enumerate(composition)}
    found.sort(key=lambda violation: places.get(violation.node or "", -1))
    return tuple(found), inferred.judged
