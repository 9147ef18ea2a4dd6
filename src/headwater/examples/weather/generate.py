"""Radar scans of all stations, written to a file or published: nothing is downloaded.

`python -m headwater.examples.weather.generate scans.jsonl --sweeps 24` writes two hours of scans, a
JSON line each. A name that ends in `.xml` has events that only say where the scans are, as radar
networks send them, with the scans in a folder beside. `--publish radar` publishes to a stream.
"""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

import numpy as np

from headwater.errors import HeadwaterError
from headwater.examples.weather.plane import SIDE
from headwater.examples.weather.radar import SCHEMA, SWEEP, Radar, grids_of
from headwater.examples.weather.sky import HOUR, Sky
from headwater.examples.weather.stations import STATIONS, by_id

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from headwater.streams import Streams

SWEEPS = 24
"""Scans of each station: two hours."""


def sweeps(
    number: int = SWEEPS, *, storms: int = 60, seed: int = 7, stations: Sequence[str] = ()
) -> Iterator[pa.Table]:
    """The scans of all stations, or of those named, a table for each five minutes.

    They are a function of the parameters: the storms are those of `Sky.plan(storms, hours, seed)`,
    and a station's scans are the same whichever others there are.
    """
    if number < 1:
        raise HeadwaterError(f"sweeps={number} is not a number of scans of each station")
    radar = Radar(sky_of(number, storms=storms, seed=seed), seed)
    chosen = sorted(STATIONS.index(by_id(name)) for name in stations) or range(len(STATIONS))
    for sweep in range(number):
        yield radar.scans(sweep * len(STATIONS) + np.array(chosen, np.int64))


def sky_of(number: int = SWEEPS, *, storms: int = 60, seed: int = 7) -> Sky:
    """The truth behind `sweeps` of the same parameters."""
    return Sky.plan(storms, number * SWEEP / HOUR, seed)


def write(
    path: str | os.PathLike[str], number: int = SWEEPS, *, storms: int = 60, seed: int = 7
) -> int:
    """Writes scans to a new file, as JSON lines or XML by its name; how many it were."""
    file = Path(path)
    if file.suffix not in _FORMS:
        raise HeadwaterError(f"{file.name} must end in {' or '.join(_FORMS)}, which tells its form")
    if file.exists():
        raise HeadwaterError(f"{file} is there already: write to a new file")
    file.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with file.open("w", encoding="utf-8") as out:
        for scans in sweeps(number, storms=storms, seed=seed):
            out.writelines(_FORMS[file.suffix](scans, file))
            count += len(scans)
    return count


def publish(
    registry: Streams,
    name: str = "radar",
    number: int = SWEEPS,
    *,
    rate: float | None = None,
    storms: int = 60,
    seed: int = 7,
) -> int:
    """Publishes scans to a new or empty stream, no more than `rate` a second; how many it were."""
    if rate is not None and rate <= 0:
        raise HeadwaterError(f"rate={rate} is not a number of scans a second")
    if name not in registry or registry.describe(name).events:  # a flow that reads it may have
        registry.create(name, SCHEMA, event_time="at", id="scan")  # declared it before
    size = len(STATIONS) if rate is None else min(len(STATIONS), math.ceil(rate / 10))
    began, count = time.monotonic(), 0
    for scans in sweeps(number, storms=storms, seed=seed):
        for start in range(0, len(scans), size):
            if rate is not None:
                time.sleep(max(0.0, began + count / rate - time.monotonic()))
            count += registry.publish(name, scans.slice(start, size), consent=True).events
    return count


def _json(scans: pa.Table, file: Path) -> Iterator[str]:
    for scan in scans.to_pylist():
        yield json.dumps({**scan, "at": scan["at"].isoformat()}, separators=(",", ":")) + "\n"


def _xml(scans: pa.Table, file: Path) -> Iterator[str]:
    folder = file.with_suffix("").resolve()
    folder.mkdir(exist_ok=True)
    both = np.stack(grids_of(scans, "dbz", "velocity"), axis=1).reshape(-1, 2, SIDE, SIDE)
    columns = scans.select(["scan", "at", "station", "file"]).to_pylist()
    for scan, grids in zip(columns, both, strict=True):
        place = folder / f"{scan['file']}.npy"
        np.save(place, grids)
        told = {**scan, "at": scan["at"].isoformat(), "file": place}
        inner = "".join(f"<{name}>{escape(str(value))}</{name}>" for name, value in told.items())
        yield f"<radar>{inner}</radar>\n"


_FORMS = {".jsonl": _json, ".xml": _xml}


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes or publishes scans, and says how many."""
    import argparse

    parser = argparse.ArgumentParser(
        prog="python -m headwater.examples.weather.generate",
        description="Radar scans of 121 stations, every five minutes.",
    )
    parser.add_argument("file", nargs="?", help="a new file, .jsonl or .xml")
    parser.add_argument("--publish", metavar="NAME", help="a new stream, or an empty one")
    parser.add_argument("--streams", metavar="DIR", help="the streams folder")
    parser.add_argument("--rate", type=float, help="scans a second at most, when published")
    parser.add_argument("--sweeps", type=int, default=SWEEPS, help="scans of each station; 24")
    parser.add_argument("--storms", type=int, default=60, help="storms over the country; 60")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args(arguments)
    if (given.file is None) == (given.publish is None):
        parser.error("give either a file or --publish NAME")
    settings: dict[str, Any] = {"storms": given.storms, "seed": given.seed}
    try:
        if given.publish is None:
            count = write(given.file, given.sweeps, **settings)
        else:
            from headwater import streams

            registry = streams.open(given.streams)
            count = publish(registry, given.publish, given.sweeps, rate=given.rate, **settings)
    except HeadwaterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{count} scans")
    return 0


if __name__ == "__main__":
    sys.exit(main())
