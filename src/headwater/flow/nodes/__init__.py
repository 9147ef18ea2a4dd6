"""The nodes of a flow: one small frozen class per kind of step.

A node says what its step does, never how Spark does it: that is a lowering's part. `inputs`
are the nodes upstream, `step` is the step's stable name, `site` the user's file and line.
"""

from headwater.flow.nodes.base import Node
from headwater.flow.nodes.ends import Identity, Keep, Sink, Source, Static
from headwater.flow.nodes.functions import GroupFunction, Map, Service, name_of
from headwater.flow.nodes.groups import Aggregate, Deduplicate, Join, Union
from headwater.flow.nodes.ordered import (
    Aggregated,
    BSort,
    CountWindow,
    JoinLast,
    JoinLatest,
    JoinValue,
    Last,
    Match,
    Merge,
    Ordered,
    OrderedJoin,
    ValueWindow,
)
from headwater.flow.nodes.rows import (
    Alias,
    Drop,
    Explode,
    Filter,
    FlatMap,
    Project,
    Rename,
    Watermark,
    WithColumns,
)

KINDS: tuple[type[Node], ...] = (
    Source,
    Static,
    Filter,
    Project,
    WithColumns,
    Rename,
    Drop,
    Alias,
    Watermark,
    Explode,
    FlatMap,
    Map,
    Service,
    Union,
    Merge,
    Aggregate,
    GroupFunction,
    Join,
    Deduplicate,
    CountWindow,
    ValueWindow,
    BSort,
    JoinLatest,
    JoinLast,
    JoinValue,
    Match,
    Sink,
)
"""Every kind of node, in the order of the generated operator table."""

__all__ = [
    "KINDS",
    "Aggregate",
    "Aggregated",
    "Alias",
    "BSort",
    "CountWindow",
    "Deduplicate",
    "Drop",
    "Explode",
    "Filter",
    "FlatMap",
    "GroupFunction",
    "Identity",
    "Join",
    "JoinLast",
    "JoinLatest",
    "JoinValue",
    "Keep",
    "Last",
    "Map",
    "Match",
    "Merge",
    "Node",
    "Ordered",
    "OrderedJoin",
    "Project",
    "Rename",
    "Service",
    "Sink",
    "Source",
    "Static",
    "Union",
    "ValueWindow",
    "Watermark",
    "WithColumns",
    "name_of",
]
