"""The rules of composition (Streamflow's §4.2 and Figures 39–41), all checked at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from headwater.compose.rules.grammar import (
    joins_have_policies,
    operators_read_streams,
    sources_take_statics,
    static_stays_static,
    statics_go_where_they_can,
    streams_reach_sinks,
)
from headwater.compose.rules.shape import (
    acyclic,
    known_inputs,
    right_ports,
    sinks_end,
    sources_are_read,
    streams_are_distinct,
    tables_are_ports,
)

if TYPE_CHECKING:
    from headwater.compose.graph import Graph
    from headwater.compose.labels import Labels
    from headwater.compose.violations import Violation

Rule = Callable[["Graph", "Labels"], Iterator["Violation"]]

ALL: tuple[Rule, ...] = (
    known_inputs,
    right_ports,
    acyclic,
    sinks_end,
    sources_are_read,
    streams_are_distinct,
    tables_are_ports,
    streams_reach_sinks,
    sources_take_statics,
    operators_read_streams,
    statics_go_where_they_can,
    joins_have_policies,
    static_stays_static,
)
"""Each rule looks at the whole graph and says what is wrong; none depends on another."""


def violations(graph: Graph, labels: Labels) -> list[Violation]:
    """Every violation of every rule, with its file and line, in the order of the nodes."""
    found = [violation for rule in ALL for violation in rule(graph, labels)]
    places = {name: at for at, name in enumerate(graph.nodes)}
    found.sort(key=lambda violation: places.get(violation.node or "", -1))
    return [graph.composition.origin.of(violation) for violation in found]
