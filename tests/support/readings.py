"""Two small streams that ordered joins are tested with: readings, and limits for them."""

from __future__ import annotations

import headwater as hw
from tests.support.streams import Lab

READINGS = """
1 | 1 | 1 | 10
2 | 2 | 2 | 20
--
3 | 5 | 1 | 30
4 | 6 | 2 | 40
--
5 | 9 | 1 | 50
"""
LIMITS = """
101 | 1 | 1 | 7
102 | 2 | 1 | 8
--
103 | 5 | 2 | 9
--
104 | 40 | 1 | 6
"""


def sides(flow: hw.Flow, lab: Lab) -> tuple[hw.Frame, hw.Frame]:
    readings = lab.source(flow, "readings", READINGS)
    limits = lab.source(flow, "limits", LIMITS)
    return readings, limits.selectExpr("id AS limit_id", "ts AS since", "k", "v AS limit")


def pair(left: int, right: int | None) -> tuple[tuple[int, int | None], dict[str, set[int]]]:
    sets = {"readings": {left}}
    return (left, right), {"limits": {right}, **sets} if right is not None else sets
