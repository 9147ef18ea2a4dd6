"""The kinds of nodes, in the order in which docs list them."""

from headwater.compose.kinds.combining import Join, Merge
from headwater.compose.kinds.ends import Sink, Source, Static
from headwater.compose.kinds.operators import Aggregate, Filter, Map, Match, Sql
from headwater.compose.kinds.work import Function, Job, Service
from headwater.compose.node import Node

KINDS: dict[str, type[Node]] = {
    kind.kind: kind
    for kind in (
        Source,
        Static,
        Filter,
        Map,
        Function,
        Service,
        Aggregate,
        Merge,
        Join,
        Match,
        Sql,
        Job,
        Sink,
    )
}
"""Each kind by the word that files use."""

__all__ = [
    "KINDS",
    "Aggregate",
    "Filter",
    "Function",
    "Job",
    "Join",
    "Map",
    "Match",
    "Merge",
    "Service",
    "Sink",
    "Source",
    "Sql",
    "Static",
]
