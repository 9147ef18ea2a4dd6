"""Flows as files: nodes, rules, labels, sub-flows and runtimes, before anything runs."""

from headwater.compose.cardinality import Cardinality
from headwater.compose.composition import Composition
from headwater.compose.difference import Difference, difference
from headwater.compose.kinds import KINDS
from headwater.compose.node import Node
from headwater.compose.plan import Boundary, Plan, RequiredJoin, SubFlow, Unit
from headwater.compose.structures import Port
from headwater.compose.violations import RULES, CompositionError, Violation

__all__ = [
    "KINDS",
    "RULES",
    "Boundary",
    "Cardinality",
    "Composition",
    "CompositionError",
    "Difference",
    "Node",
    "Plan",
    "Port",
    "RequiredJoin",
    "SubFlow",
    "Unit",
    "Violation",
    "difference",
]
