"""Object annotation: bicycles and pedestrians with their frames, as plain Python computes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.examples import object_annotation
from tests.examples.windows import SECOND, Sets, grouped, records, seconds, told
from tests.support.streams import Lab

Sighting = tuple[int, int, int]  # object, time, frame


def sightings(frames: list[dict[str, Any]], by: str, type: str) -> list[Sighting]:
    return [
        (seen["object"], frame["at"], frame["id"])
        for frame in frames
        for seen in frame[by]
        if seen["type"] == type and (by != "lidar" or max(abs(seen["x"]), abs(seen["y"])) < 20)
    ]


def expected(frames: list[dict[str, Any]], delay: int = 0) -> dict[str, Sets]:
    """Both sinks' rows with their sets of ids, for the windows that are over."""
    over = max(frame["at"] for frame in frames) - delay * SECOND

    def windowed(by: str, type: str, size: int, slide: int) -> Any:
        found = sightings(frames, by, type)
        groups = grouped(found, lambda seen: seen[0], lambda seen: seen[1], size, slide)
        return {key: rows for key, rows in groups.items() if key[1][1] <= over}

    cycles = {
        (item, seconds(window), len(rows)): {frame for _, _, frame in rows}
        for (item, window), rows in windowed("lidar", "bicycle", 6, 3).items()
        if len(rows) > 11
    }
    left = windowed("left_camera", "pedestrian", 2, 1)
    right = windowed("right_camera", "pedestrian", 2, 1)
    crossed = {
        (item, seconds(window), f, at / SECOND, other_f, other_at / SECOND): {f, other_f}
        for item, window in left.keys() & right.keys()
        for _, at, f in left[item, window]
        for _, other_at, other_f in right[item, window]
    }
    return {"cycles_in_front": cycles, "crossed_pedestrians": crossed}


@pytest.mark.spark
def test_results_and_sets(flow: hw.Flow, lab: Lab) -> None:
    object_annotation.generate(lab.home / "data", 600, files=4, disorder=1, pixels=100)
    options = {"maxFilesPerTrigger": 1}
    object_annotation.sinks(flow, lab.home / "data", watermark="1 second", options=options)
    found = lab.tell(flow)
    sets = expected(records(lab.home / "data"), delay=1)
    for sink in object_annotation.SINKS:
        assert found[sink] == told("frames", sets[sink]), sink
        assert len(found[sink]) > 3, sink


def test_frames_have_kilobytes_and_objects_around(tmp_path: Path) -> None:
    object_annotation.generate(tmp_path, 500)
    frames = records(tmp_path)
    assert [frame["at"] for frame in frames] == [i * SECOND // 10 for i in range(500)]
    assert {len(frame["pixels"]) for frame in frames} == {2_048}
    assert len({frame["pixels"] for frame in frames}) == 500
    assert all(6 <= len(frame["lidar"]) <= 12 for frame in frames)
    for frame in frames:
        left, right = ({s["object"] for s in frame[f"{side}_camera"]} for side in ("left", "right"))
        assert not left & right
        assert left | right <= {seen["object"] for seen in frame["lidar"]}


def test_results_of_the_sizes_in_the_paper(tmp_path: Path) -> None:
    """15 to 50 frames for a bicycle, two for a pedestrian."""
    object_annotation.generate(tmp_path, 5_000, pixels=0)
    sets = expected(records(tmp_path))
    cycles = [len(ids) for ids in sets["cycles_in_front"].values()]
    assert min(cycles) == 12
    assert 15 < sum(cycles) / len(cycles) < 50
    assert {len(ids) for ids in sets["crossed_pedestrians"].values()} == {2}


def test_not_everyone_is_seen_for_long_enough(tmp_path: Path) -> None:
    object_annotation.generate(tmp_path, 5_000, pixels=0)
    frames = records(tmp_path)
    sets = expected(frames)
    for sink, by, kind in [
        ("cycles_in_front", "lidar", "bicycle"),
        ("crossed_pedestrians", "left_camera", "pedestrian"),
    ]:
        found = {row[0] for row in sets[sink]}
        assert found < {item for item, _, _ in sightings(frames, by, kind)}
        assert len(found) > 20
