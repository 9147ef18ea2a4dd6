"""The names of the columns that Headwater adds to a user's rows."""

from __future__ import annotations

PREFIX = "__hw_"
"""Reserved: no column of a user's begins with it."""

RECORD = "__hw_record"
POSITION = "__hw_position"
TIME = "__hw_time"
KEY = "__hw_key"
ORDER = "__hw_order_"
"""Then a number: what rows of a micro-batch are sorted by, first number first."""

GROUP = "__hw_group"
"""A hash of the keys by which an ordered step keeps its state."""
NUMBER = "__hw_number"
"""Which of a key's windows or matches a row is, counted from 0."""
SIDE = "__hw_side"
"""Which input a row of an ordered join comes from: 0 is the left."""
LEFT_ROW, RIGHT_ROW = "__hw_left_row", "__hw_right_row"
