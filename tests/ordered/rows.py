"""Rows as ordered steps get them, from short lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from headwater.names import GROUP, KEY, LEFT_ROW, ORDER, RIGHT_ROW, SIDE, TIME
from headwater.ordered.joins import VALUE
from headwater.ordered.step import State, Step, in_order

PLACE = f"{ORDER}0"
SORT = (PLACE, KEY)
TIMES = pa.timestamp("us", "UTC")
SECOND = 1_000_000


def arrivals(
    values: Sequence[Any], kind: pa.DataType, groups: Sequence[int] | None = None, first: int = 0
) -> pa.Table:
    """One row for each value, with the id that its number in the stream is."""
    numbers = pa.array(range(first, first + len(values)), pa.int64())
    return pa.table(
        {
            GROUP: pa.array(groups or [0] * len(values), pa.int64()),
            PLACE: numbers,
            KEY: numbers,
            TIME: pa.array([n.as_py() * SECOND for n in numbers], pa.int64()).cast(TIMES),
            "v": pa.array(values, kind),
            "id": numbers,
        }
    )


def sides(rows: Sequence[tuple[str, float | None]], first: int = 0) -> pa.Table:
    """Rows of a join: `("l", 3)` is a left row of time and value 3."""
    numbers = list(range(first, first + len(rows)))
    times = [None if v is None else int(v * SECOND) for _, v in rows]

    def side(letter: str) -> pa.Array:
        own = [
            {letter: v, "n": n} if s == letter else None
            for n, (s, v) in zip(numbers, rows, strict=True)
        ]
        return pa.array(own, pa.struct([(letter, pa.float64()), ("n", pa.int64())]))

    return pa.table(
        {
            GROUP: pa.array([0] * len(rows), pa.int64()),
            SIDE: pa.array([int(s == "r") for s, _ in rows], pa.int64()),
            PLACE: pa.array(numbers, pa.int64()),
            KEY: pa.array(numbers, pa.int64()),
            TIME: pa.array(times, pa.int64()).cast(TIMES),
            VALUE: pa.array([v for _, v in rows], pa.float64()),
            LEFT_ROW: side("l"),
            RIGHT_ROW: side("r"),
        }
    )


def through(step: Step, batches: Iterable[pa.Table]) -> list[list[dict[str, Any]]]:
    """What a step gives for each of several micro-batches, its state kept as bytes between them."""
    from headwater.ordered.tables import packed_state, unpacked_state

    kept: bytes | None = None
    given = []
    for batch in batches:
        state: State = unpacked_state(kept)
        out, state = step.apply(state, in_order(batch, SORT))
        kept = packed_state(state)
        given.append(out.to_pylist())
    return given


def pairs(made: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    """The values of pairs, left and right."""
    return [
        (row[LEFT_ROW] and row[LEFT_ROW]["l"], row[RIGHT_ROW] and row[RIGHT_ROW]["r"])
        for row in made
    ]
