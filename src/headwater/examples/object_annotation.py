"""Object annotation: what a driving vehicle sees; flows for bicycles in front and pedestrians.

A vehicle takes ten frames a second. Each has the objects around it, as found by its LiDAR and by a
camera on its left and on its right, with their types and positions, and two kilobytes of pixels.
Bicycles come and go. Some pedestrians walk beside the vehicle, where one camera sees them; others
cross in front of it, out of one camera's sight and into the other's.

Ananke's Object Annotation queries (its Figure 12b), over synthetic frames in place of Argoverse's.
A result of *cycles_in_front* comes from 12 to 60 frames, one of *crossed_pedestrians* from two.

No step needs the pixels, so Spark does not read them unless the source is to keep its records:
`sinks(…, keep="contributing")`.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     [file.name for file in generate(folder, frames=100, files=2)]
['frames-00000.parquet', 'frames-00001.parquet']
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.errors import HeadwaterError
from headwater.examples import stream
from headwater.examples.stream import SECOND, TIMESTAMP

if TYPE_CHECKING:
    import os
    from collections.abc import Collection
    from pathlib import Path

    from headwater import Flow, Frame
    from headwater.examples.stream import Bools, Floats, Ints

_SEEN = "array<struct<object:int,type:string,x:double,y:double>>"

SCHEMA = (
    f"id bigint, ts timestamp, lidar {_SEEN}, left_camera {_SEEN}, right_camera {_SEEN}, "
    "pixels binary"
)
"""The frames' columns, for Spark. `x` is metres ahead of the vehicle, `y` metres to its left."""

SOURCE = "frames"
SINKS = ("cycles_in_front", "crossed_pedestrians")

NEAR = 20
"""Metres, ahead and aside, within which a bicycle is in front."""

MANY = 11
"""More frames than these with a bicycle in front, within six seconds, are a result."""

TYPES = ("bicycle", "pedestrian", "vehicle")

_FRAME = SECOND // 10
_AROUND = 12  # objects around the vehicle at a time, each followed by another
_LIFE = 80  # frames for which an object is around
_SIGHT = 40.0  # metres that the LiDAR sees
_CAMERA = (1.0, 2.0)  # metres to its side between which a camera sees

_OBJECTS = pa.list_(
    pa.struct(
        [
            ("object", pa.int32()),
            ("type", pa.string()),
            ("x", pa.float64()),
            ("y", pa.float64()),
        ]
    )
)
_ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", TIMESTAMP),
        *((name, _OBJECTS) for name in ("lidar", "left_camera", "right_camera")),
        ("pixels", pa.binary()),
    ]
)


def generate(
    path: str | os.PathLike[str],
    frames: int = 20_000,
    pixels: int = 2_048,
    files: int = 32,
    seed: int = 7,
    disorder: int = 0,
) -> list[Path]:
    """Writes `frames` frames into the folder `path` as `files` files in time order.

    `pixels` is how many bytes of them a frame has, which no compression can shorten. With
    `disorder` a frame arrives up to that many seconds after its time (a watermark of as many
    seconds keeps every frame).
    """
    stream.require(SOURCE, frames, files, disorder)
    if pixels < 0:
        raise HeadwaterError(f"pixels={pixels} is not a number of bytes")
    street = _Street.plan(frames, pixels, seed)
    times = np.arange(frames, dtype=np.int64) * _FRAME
    order = stream.arrivals(times, disorder, seed)
    return stream.write(path, SOURCE, order, files, street.frames)


def sinks(
    flow: Flow,
    path: str | os.PathLike[str],
    *,
    only: Collection[str] = SINKS,
    watermark: str = "0 seconds",
    **source: Any,
) -> None:
    """Adds the frames in a folder, and an alert for bicycles and one for pedestrians.

    *cycles_in_front*: a bicycle in front in more than eleven frames within six seconds.
    *crossed_pedestrians*: a pedestrian whom the left and the right camera see within two seconds.
    """
    frames = stream.source(flow, SOURCE, path, SCHEMA, {"watermark": watermark, **source})
    made = {
        "cycles_in_front": lambda: _cycles_in_front(frames),
        "crossed_pedestrians": lambda: _crossed_pedestrians(frames),
    }
    stream.add(flow, made, only)


def _cycles_in_front(frames: Frame) -> Frame:
    """A row for each bicycle and window of six seconds in which it was in front for long."""
    from pyspark.sql import functions as F

    return (
        frames.select("ts", F.explode("lidar").alias("seen"))
        .select("ts", "seen.object", "seen.type", "seen.x", "seen.y")
        .filter(f"type = 'bicycle' and abs(x) < {NEAR} and abs(y) < {NEAR}")
        .groupBy("object", F.window("ts", "6 seconds", "3 seconds"))
        .agg(F.count("*").alias("n"))
        .filter(f"n > {MANY}")
    )


def _crossed_pedestrians(frames: Frame) -> Frame:
    """A row for each pedestrian, window of two seconds, and pair of sightings in it.

    This is Ananke's join: two sightings of an object match in every window that both are in. So a
    result comes from two frames, one by each camera. An aggregate over the sightings of both
    cameras would come from all of them, and not say which one made the pair. `F.window` belongs
    into a `groupBy`; grouped by its frame too, a sighting is a group of its own in each window.
    """
    from pyspark.sql import functions as F

    def sightings(camera: str) -> Frame:
        frame = f"{camera}_frame"
        return (
            frames.select(F.col("id").alias(frame), "ts", F.explode(f"{camera}_camera").alias("s"))
            .select(frame, "ts", "s.object", "s.type")
            .filter("type = 'pedestrian'")
            .groupBy("object", frame, F.window("ts", "2 seconds", "1 second"))
            .agg(F.max("ts").alias(f"{camera}_ts"))
        )

    return sightings("left").join(sightings("right"), ["object", "window"])


@dataclass(frozen=True, slots=True)
class _Street:
    """All objects of a stream, by number; each takes the place of one that is gone."""

    pixels: int
    seed: int
    offset: Ints  # by place: how long the first object has been around
    type: Ints  # by object, as below
    x: Floats
    y: Floats
    ahead: Floats  # metres by which x grows from frame to frame
    aside: Floats

    @classmethod
    def plan(cls, frames: int, pixels: int, seed: int) -> _Street:
        """Draws the objects for a stream of so many frames."""
        rng = np.random.default_rng(seed)
        objects = _AROUND * (frames // _LIFE + 2)
        offset = rng.integers(0, _LIFE, _AROUND)
        kind = rng.integers(0, len(TYPES), objects)
        walks = kind == TYPES.index("pedestrian")
        crosses = walks & (rng.random(objects) < 0.5)
        side = rng.choice([-1.0, 1.0], objects)

        x = np.where(walks, rng.uniform(2, 15, objects), rng.uniform(5, 35, objects))
        ahead = np.where(walks, 0.0, rng.uniform(-0.4, 0.4, objects))
        y = side * np.where(walks, rng.uniform(1.2, 1.8, objects), rng.uniform(2, 10, objects))
        y = np.where(crosses, side * rng.uniform(3, 8, objects), y)
        aside = np.where(crosses, -side * rng.uniform(0.12, 0.25, objects), 0.0)
        return cls(pixels, seed, offset, kind, x, y, ahead, aside)

    def frames(self, ids: Ints) -> pa.Table:
        """The frames with these ids."""
        turn, age = np.divmod(ids[:, np.newaxis] + self.offset, _LIFE)
        objects = turn * _AROUND + np.arange(_AROUND)
        x = np.round(self.x[objects] + age * self.ahead[objects], 2)
        y = np.round(self.y[objects] + age * self.aside[objects], 2)
        near, far = _CAMERA
        columns = {
            "id": ids,
            "ts": ids * _FRAME,
            "lidar": self._seen(objects, x, y, np.hypot(x, y) < _SIGHT),
            "left_camera": self._seen(objects, x, y, (near <= y) & (y < far)),
            "right_camera": self._seen(objects, x, y, (near <= -y) & (-y < far)),
            "pixels": self._pixels(ids),
        }
        return stream.table(columns, _ARROW)

    def _seen(self, objects: Ints, x: Floats, y: Floats, where: Bools) -> pa.Array:
        """The objects of each frame that are where one looks."""
        offsets = np.r_[0, np.cumsum(where.sum(axis=1))].astype(np.int32)
        seen = objects[where]
        values = [
            pa.array(seen.astype(np.int32)),
            pa.array(TYPES).take(pa.array(self.type[seen])),
            pa.array(x[where]),
            pa.array(y[where]),
        ]
        structs = pa.StructArray.from_arrays(values, fields=list(_OBJECTS.value_type))
        return pa.ListArray.from_arrays(pa.array(offsets), structs, type=_OBJECTS)

    def _pixels(self, ids: Ints) -> pa.Array:
        words = -(-self.pixels // 8)
        numbers = ids[:, np.newaxis] * words + np.arange(words)
        rows = stream.noise(numbers, self.seed).view(np.uint8).reshape(len(ids), 8 * words)
        cut = np.ascontiguousarray(rows[:, : self.pixels])
        offsets = np.arange(len(ids) + 1, dtype=np.int32) * self.pixels
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(cut)]
        return pa.Array.from_buffers(pa.binary(), len(ids), buffers)
