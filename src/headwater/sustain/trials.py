"""How often verdicts are right on random queues: Poisson arrivals, exponential service, one slot.

`python -m headwater.sustain.trials docs/sustain.md` writes the table between the page's markers.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.sustain.queue import Queue
from headwater.sustain.simulation import departures

if TYPE_CHECKING:
    from collections.abc import Iterator

BEGIN = "<!-- begin: python -m headwater.sustain.trials -->"
END = "<!-- end -->"
LOADS = (0.3, 0.5, 0.8, 0.9, 0.95, 1.05, 1.1, 1.2, 1.5)
MINUTES, QUEUES = 20, 100
FIRST = 1_000
"""The first seed: the thresholds were chosen on others, from 0 on."""


def states(load: float, seed: int, minutes: int = MINUTES) -> list[str]:
    """The verdicts on one queue, one a minute; an event takes a second on average."""
    numbers = random.Random(seed)
    came = list(_poisson(load, 60.0 * minutes, numbers))
    takes = [numbers.expovariate(1.0) for _ in came]
    gone = departures(came, takes.__getitem__)
    happened = sorted(
        [(at, -1.0) for at in came] + [(at, took) for at, took in zip(gone, takes, strict=True)]
    )
    queue, at = Queue("n"), 0
    found: list[str] = []
    for minute in range(1, minutes + 1):
        while at < len(happened) and happened[at][0] <= 60 * minute:
            moment, took = happened[at]
            if took < 0:
                queue.arrived(at=moment)
            else:
                queue.finished(compute=took, at=moment)
            at += 1
        queue.look(at=60 * minute)
        found.append(queue.measured().verdict.state)
    return found


def table(queues: int = QUEUES, minutes: int = MINUTES) -> str:
    """Shares of verdicts for each load, and when growth was first said."""
    lines = [
        f"| load | healthy | bursting | growing | growing within {minutes} min | first, median |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for load in LOADS:
        told = [states(load, FIRST + n, minutes) for n in range(queues)]
        counts = Counter(state for each in told for state in each)
        shares = [f"{counts[s] / counts.total():.2%}" for s in ("healthy", "bursting", "growing")]
        first = sorted(each.index("growing") + 1 for each in told if "growing" in each)
        median = f"{first[len(first) // 2]} min" if len(first) > queues / 2 else ""
        grew = f"{len(first)} of {queues}"
        lines.append(f"| {load:.0%} | {' | '.join(shares)} | {grew} | {median} |")
    return "\n".join(lines)


def _poisson(rate: float, until: float, numbers: random.Random) -> Iterator[float]:
    at = numbers.expovariate(rate)
    while at < until:
        yield at
        at += numbers.expovariate(rate)


if __name__ == "__main__":
    page = Path(sys.argv[1])
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}", encoding="utf-8")
