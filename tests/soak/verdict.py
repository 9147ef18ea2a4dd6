"""The checker as a process of its own: `python -m tests.soak.verdict FOLDER`.

It knows what is on disk, and from the soak only how much was acknowledged. What it found is in the
file `found.json` of the folder; so a soak that was kept can be checked again.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from headwater.streams.files import write_json
from tests.restart.job import session
from tests.soak.checking import Found, check_flows
from tests.soak.publishing import acknowledged, grid, traffic
from tests.soak.recomputing import check_whole
from tests.soak.world import World

NOTES, FOUND = "acknowledged.json", "found.json"


def note(world: World, hostile: list[dict[str, Any]]) -> None:
    """Write down what the checker has to know."""
    told = {
        "seed": world.seed,
        "reports": world.publisher.acknowledged,
        "jumps": world.publisher.supply.jumps,
        "readings": world.readings_acknowledged,
        "hostile": hostile,
    }
    (world.folder / NOTES).write_text(json.dumps(told))


def verdict(folder: Path) -> Found:
    """Check everything that a soak left in a folder."""
    told, found, home = json.loads((folder / NOTES).read_text()), Found(), folder / "disk"
    reports, readings = traffic(told["seed"]), grid(told["seed"])
    reports.jumps.update({int(chunk): off for chunk, off in told["jumps"].items()})
    booked = acknowledged(folder / "readings.ledger")
    if not booked <= told["readings"] <= booked + 1:  # the last one may not be booked
        found.say("readings", [f"{booked} chunks are booked, the stream has {told['readings']}"])
    supplied = (reports, told["reports"]), (readings, told["readings"])
    check_whole(home, *supplied, told["hostile"], found, told["seed"])
    spark = session()
    try:
        check_flows(home, spark, found)
    finally:
        spark.stop()
    return found


def read(folder: Path) -> Found:
    """What the checker found."""
    told = json.loads((folder / FOUND).read_text())
    return Found(told["wrong"], Counter(told["counts"]))


if __name__ == "__main__":
    place = Path(sys.argv[1])
    result = verdict(place)
    write_json(place / FOUND, {"wrong": result.wrong, "counts": result.counts})
    print(json.dumps(result.counts, indent=1), *result.wrong, sep="\n")
