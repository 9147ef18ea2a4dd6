"""A reference interpreter of flows, without Spark: the oracle of Headwater's own tests.

It says what a flow must give over given micro-batches and watermarks, and which source
records stand behind each result.
"""

from headwater.testing.arrival import TiedError
from headwater.testing.interpreter import Input, Result, interpret
from headwater.testing.operators import Counters
from headwater.testing.recorded import Recorded, arrival_places, read_checkpoint
from headwater.testing.rows import InterpreterError, Row, Struct

__all__ = [
    "Counters",
    "Input",
    "InterpreterError",
    "Recorded",
    "Result",
    "Row",
    "Struct",
    "TiedError",
    "arrival_places",
    "interpret",
    "read_checkpoint",
]
