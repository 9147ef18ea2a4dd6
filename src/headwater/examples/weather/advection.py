"""Carrying fields with the wind, over a grid larger than a scan.

>>> field = spread(np.eye(SIDE).ravel())
>>> field.shape, float(field.sum())
((120, 120), 40.0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwater.examples.weather.plane import CELL, SIDE, Numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDE = 3 * SIDE
BORDER = (WIDE / 2 - 3) * CELL
"""Kilometres from the station beyond which a storm leaves the grid."""

_STEP = 300.0  # seconds
_MIX = 0.02  # what a cell gives to its neighbours in a step: storms lose their edge
_FADE = 3.0  # dB that a storm loses in an hour
_REACH = 60.0  # kilometres over which the motion of a storm gives way to that of another

_LINE = (np.arange(WIDE) - (WIDE - 1) / 2) * CELL
_EAST = np.broadcast_to(_LINE, (WIDE, WIDE))
_NORTH = np.broadcast_to(-_LINE[:, np.newaxis], (WIDE, WIDE))


def spread(cells: Numbers) -> Numbers:
    """A scan's grid in the middle of the larger one."""
    field = np.zeros((WIDE, WIDE))
    middle = slice(SIDE, 2 * SIDE)
    field[middle, middle] = cells.reshape(SIDE, SIDE)
    return field


def carried(fields: Sequence[Numbers], motions: Numbers, minutes: Sequence[int]) -> Numbers:
    """Each field's centre and strength (km east, km north, dBZ) at some minutes from now.

    The wind anywhere is that of the storms, the nearer the more, and moves along with them.
    """
    told = np.zeros((len(fields), len(minutes), 3))
    now = list(fields)
    if not now:
        return told
    where = np.array([_centre(field) for field in fields]).reshape(-1, 2)
    done = 0.0
    for place, moment in enumerate(minutes):
        while done < moment * 60:
            step = min(_STEP, moment * 60 - done)
            east, north = _wind(where, motions)
            now = [_stepped(field, east, north, step) for field in now]
            where += motions * step / 1_000
            done += step
        for number, field in enumerate(now):
            strongest = 10 * np.log10(max(field.max(), 1e-9)) - _FADE * done / 3_600
            told[number, place] = (*_centre(field), strongest)
    return told


def _wind(centres: Numbers, motions: Numbers) -> tuple[Numbers, Numbers]:
    """Metres a second, east and north, in each cell: a mean by the distance from the storms."""
    east, north, total = np.zeros((3, WIDE, WIDE))
    for (x, y), (u, v) in zip(centres, motions, strict=True):
        weight = 1 / (1 + ((_EAST - x) ** 2 + (_NORTH - y) ** 2) / _REACH**2) ** 2
        east += weight * u
        north += weight * v
        total += weight
    return east / total, north / total


def _stepped(field: Numbers, east: Numbers, north: Numbers, seconds: float) -> Numbers:
    """A step: each cell takes, between four cells, what was where its air comes from."""
    to_cells = seconds / 1_000 / CELL
    column = np.clip(np.arange(WIDE) - east * to_cells, 0, WIDE - 1.001)
    row = np.clip(np.arange(WIDE)[:, np.newaxis] + north * to_cells, 0, WIDE - 1.001)
    left, top = column.astype(np.int64), row.astype(np.int64)
    x, y = column - left, row - top
    above = field[top, left] * (1 - x) + field[top, left + 1] * x
    below = field[top + 1, left] * (1 - x) + field[top + 1, left + 1] * x
    moved = above * (1 - y) + below * y
    around = sum(np.roll(moved, shift, axis) for shift in (1, -1) for axis in (0, 1))
    mixed: Numbers = (1 - _MIX) * moved + _MIX / 4 * around
    return mixed


def _centre(field: Numbers) -> tuple[float, float]:
    total = field.sum() or 1.0
    return float((field * _EAST).sum() / total), float((field * _NORTH).sum() / total)
