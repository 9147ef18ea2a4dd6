"""Ordered steps as Spark plans: what goes into them, and what is made of what comes out.

`headwater.ordered` computes; here its inputs are put into columns of their own (the hash of the
keys, what to sort by, the arguments of aggregates) and its outputs under the user's names, with
Spark's mark on the event time.
"""

from headwater.lowering.ordered.joins import join
from headwater.lowering.ordered.matching import match
from headwater.lowering.ordered.sorting import b_sort
from headwater.lowering.ordered.windows import windows

__all__ = ["b_sort", "join", "match", "windows"]
