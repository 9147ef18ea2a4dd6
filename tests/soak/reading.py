"""A reader in a process of its own: `python -m tests.soak.reading HOME NOTES SEED`.

It opens the store while the service writes it, traces results as they come, and says at once if an
answer is not what the flow means. What it counted is in the file NOTES, anew every second.
"""

from __future__ import annotations

import contextlib
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path

import headwater as hw
from headwater import streams
from headwater.errors import HeadwaterError
from headwater.streams.files import write_json

LOOKED = 200
"""How far back a reader looks."""


class Reader:
    """Asks of the newest results where they came from, and of those records where they went."""

    def __init__(self, home: Path, seed: int) -> None:
        self._home, self._chance = home, random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.refused: Counter[str] = Counter()

    def look(self) -> None:
        """Look once."""
        registry = streams.open(self._home / "streams")
        if "stopped" not in registry:
            return
        end = int(registry.log("stopped").bounds()[1])
        if not end:
            return
        tail = registry.table("stopped", max(0, end - LOOKED))["event_id"].to_pylist()
        with contextlib.closing(hw.open(self._home / "flows" / "store")) as store:
            for id_ in self._chance.sample(tail, min(5, len(tail))):
                entity = f"hw:streams/stopped/{id_}"
                records = store.backward(entity=entity)["id"].to_pylist()
                self.counts["backward"] += 1
                if len(set(records)) != 4 or len(records) != 4:
                    self.wrong.append(f"{entity} came from {sorted(records)}, not from four")
                    continue
                reached = store.forward(entity=self._chance.choice(records))["id"].to_pylist()
                self.counts["forward"] += 1
                if entity not in reached:
                    self.wrong.append(f"a record of {entity} does not lead to it")

    def loop(self, notes: Path, pause: float = 0.5) -> None:
        """Look again and again."""
        while True:
            try:
                self.look()
            except (HeadwaterError, OSError) as error:
                self.refused[f"{type(error).__name__}: {error}"[:200]] += 1
            except Exception as error:  # noqa: BLE001 - what a reader must never see
                self.wrong.append(f"a reader got {type(error).__name__}: {error}"[:400])
            told = {"counts": self.counts, "wrong": self.wrong[:20], "refused": self.refused}
            write_json(notes, json.loads(json.dumps(told)))
            time.sleep(pause)


if __name__ == "__main__":
    Reader(Path(sys.argv[1]), int(sys.argv[3])).loop(Path(sys.argv[2]))
