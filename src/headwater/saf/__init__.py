"""Stream ancestor functions: provenance by event keys, over any table of assertions.

The model is that of Sansrimahachai, Weal and Moreau, "Stream Ancestor Function".
"""

from headwater.errors import TableError, UnknownStream
from headwater.saf.flow import Flow
from headwater.saf.keys import Key
from headwater.saf.operations import (
    Filter,
    LengthWindow,
    LengthWindowJoin,
    Map,
    Operation,
    TimeWindow,
    TimeWindowJoin,
)
from headwater.saf.provenance import Provenance
from headwater.saf.replaying import Replay
from headwater.saf.tracing import Ancestors

__all__ = [
    "Ancestors",
    "Filter",
    "Flow",
    "Key",
    "LengthWindow",
    "LengthWindowJoin",
    "Map",
    "Operation",
    "Provenance",
    "Replay",
    "TableError",
    "TimeWindow",
    "TimeWindowJoin",
    "UnknownStream",
]
