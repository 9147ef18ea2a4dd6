"""The ancestor function of each operation (Table II of the paper), as one SQL query for many keys.

Each query reads `keys` (the output keys, numbered by `child`) and `assertions`, and gives a row
for each pair of an output key and one of its input keys.
"""

from __future__ import annotations

from typing import assert_never

from headwater.saf.operations import (
    Filter,
    LengthWindow,
    LengthWindowJoin,
    Map,
    Operation,
    TimeWindow,
    TimeWindowJoin,
)

# The time of the input event that made the operation put out this key.
_SINCE = "k.timestamp - k.delay"


def ancestors_sql(operation: Operation) -> str:
    """The operation's ancestor function: `child`, `made`, `side`, and the input's line and key.

    `made` is the stream of the output key; `side` is 1 for the right input of a join, else 0.
    """
    # A stream joined with itself may have an event on both sides: it is one ancestor.
    return (
        "SELECT child, made, min(side) AS side, line, timestamp, seqno, stream_id, delay "
        f"FROM ({_inputs_sql(operation)}) GROUP BY ALL"
    )


def _inputs_sql(operation: Operation) -> str:
    match operation:
        case Map() | Filter():
            return _matching(operation.input, f"a.timestamp = {_SINCE}")
        case TimeWindow():
            return _within(operation.input, operation.time)
        case LengthWindow():
            # The paper prints the lower bound as (n - 1) + 1, which would leave only event n;
            # a window of l events ends at n and starts at n - l + 1.
            first = f"k.seqno - {operation.length} + 1"
            return _matching(operation.input, f"a.seqno BETWEEN {first} AND k.seqno")
        case TimeWindowJoin():
            left = _within(operation.left, operation.left_time)
            right = _within(operation.right, operation.right_time, side=1)
            return f"{left} UNION ALL {right}"
        case LengthWindowJoin():
            left = _latest(operation.left, operation.left_length)
            right = _latest(operation.right, operation.right_length, side=1)
            return f"{left} UNION ALL {right}"
        case _:
            assert_never(operation)


def _columns(side: int) -> str:
    inputs = "a.line, a.timestamp, a.seqno, a.stream_id, a.delay"
    return f"k.child, k.stream_id AS made, {side} AS side, {inputs}"


def _matching(stream: int, condition: str, side: int = 0) -> str:
    return (
        f"SELECT {_columns(side)} FROM keys k "
        f"JOIN assertions a ON a.stream_id = {stream} AND {condition}"
    )


def _within(stream: int, time: int, side: int = 0) -> str:
    condition = f"a.timestamp BETWEEN {_SINCE} - {time} AND {_SINCE}"
    return _matching(stream, condition, side)


def _latest(stream: int, length: int, side: int = 0) -> str:
    # The stream's rows are numbered, each key finds the number of its latest row, and joins with
    # that and the l - 1 numbers before it: a join by equality, far cheaper than one by range.
    return f"""
        SELECT {_columns(side)}
        FROM (
            SELECT k.*, unnest(range(number - {length} + 1, number + 1)) AS number
            FROM keys k ASOF JOIN (
                SELECT timestamp, max(number) AS number
                FROM ({_numbered(stream)}) GROUP BY timestamp
            ) newest ON {_SINCE} >= newest.timestamp
        ) k
        JOIN ({_numbered(stream)}) a USING (number)
    """


def _numbered(stream: int) -> str:
    number = "row_number() OVER (ORDER BY timestamp, seqno)"
    return f"SELECT *, {number} AS number FROM assertions WHERE stream_id = {stream}"
