"""What composing and coupling flows costs: the tables, on small sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.bench.flow import GOAL, measure


def test_publishers_get_their_events_into_the_stream(tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    [table] = measure(
        "publish",
        publishers=(1, 3),
        seconds=0.1,
        pairs=1,
        folder=tmp_path,
        progress=lambda _, done, total: steps.append((done, total)),
    )
    assert [(row["publishers"], row["processes"]) for row in table.rows] == [(1, 1), (3, 2)]
    for row in table.rows:
        assert row["events/s"] > row["waiting, events/s"] > 0
    least = min(row["events/s"] for row in table.rows)
    assert ("met" if least >= GOAL else "missed") in table.notes[0]
    assert steps == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    assert not list(tmp_path.iterdir()), "what was published is gone again"


def test_labelling_is_told_by_shape_and_size() -> None:
    [table] = measure("labels", nodes=(50, 100), pairs=1)
    shapes = ["in-tree", "in-tree", "sequential", "sequential"]
    assert [row["shape"] for row in table.rows] == shapes
    assert [round(row["nodes"], -1) for row in table.rows] == [50, 100, 50, 100]
    assert all(row["ms"] > 0 and row["µs each"] > 0 for row in table.rows)


def test_there_is_no_other_part() -> None:
    with pytest.raises(ValueError, match="no part 'speed'"):
        next(measure("speed"))
