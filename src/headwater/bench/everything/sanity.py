"""Whether a report makes sense: that there is something in it, and that its ratios can be true.

Nothing here is about speed. A ratio far out of its bounds means that something else was measured
than it says, so such a report counts as failed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from headwater.bench.figures import tables_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Bounds = tuple[float, float]

BOUNDS: dict[str, Bounds] = {
    "ratio": (0.001, 50.0),
    "of pairs": (0.001, 50.0),
    "of eager": (0.05, 10.0),
    "speed-up": (0.2, 8.0),
    "gain": (0.1, 1_000.0),
    "times a start": (0.1, 1_000.0),
    "times one": (0.01, 10_000.0),
    "edges ratio": (1.0, 100.0),
    "MB ratio": (1.0, 10_000.0),
    "share": (0.0, 1.0),
    "saved %": (-100.0, 100.0),
}
"""By column: between what its values can be."""

ANSWERS = ("owner", "other process", "reader", "reader, opened anew")
"""Who asks in `bench queries`, whose report is no table."""


def problems(report: Mapping[str, Any]) -> list[str]:
    """What can't be true in a report.

    >>> problems({"title": "T", "rows": [{"mode": "eager", "ratio": 0.5}]})
    []
    >>> problems({"title": "T", "rows": [{"mode": "eager", "ratio": 0.0}]})
    ['T: ratio 0.0 of mode eager is not between 0.001 and 50']
    """
    if "owner" in report:
        return [f"no answers for {who}" for who in ANSWERS if not report.get(who)]
    return [problem for table in tables_of(report) for problem in _of_table(table)]


def _of_table(table: Mapping[str, Any]) -> Iterator[str]:
    title = table["title"].split(",")[0]
    if not table["rows"]:
        yield f"{title}: there are no rows"
    for row in table["rows"]:
        for column, value in row.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            of = _case(row)
            if not math.isfinite(value):
                yield f"{title}: {column} {value} of {of} is no number"
            elif column.endswith("/s") and value <= 0:
                yield f"{title}: {column} {value} of {of} is no rate"
            elif column in BOUNDS and not BOUNDS[column][0] <= value <= BOUNDS[column][1]:
                low, high = BOUNDS[column]
                yield f"{title}: {column} {value} of {of} is not between {low:g} and {high:g}"
        spread = row.get("95 %")
        if spread and not 0 < spread[0] <= spread[1]:
            yield f"{title}: the interval {spread} of {_case(row)} is none"


def _case(row: Mapping[str, Any]) -> str:
    """What a row is of: its texts."""
    told = [f"{name} {value}" for name, value in row.items() if isinstance(value, str)]
    return ", ".join(told[:3]) or "a row"
