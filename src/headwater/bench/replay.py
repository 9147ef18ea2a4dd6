"""What a lazy answer costs: `backward` by replay over a large source, for one result and for many.

The stopped-vehicle flow runs once in each mode over the same reports. Then single results, chosen
over the whole run, and a list of results are asked for, in turns, after a warm-up. Rows read are
those that came out of Spark's file readers, so they say how much of the source a replay touched.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.bench.paired import QUARTILES, quartiles
from headwater.bench.report import Table
from headwater.examples import linear_road

if TYPE_CHECKING:
    from headwater.query import Store

MODES = ("ancestors", "intervals", "eager")
QUICK: dict[str, Any] = {
    "records": 20_000,
    "asked": 50,
    "repeats": 1,
    "warm_ups": 0,
    "modes": ("ancestors", "intervals"),
}
"""Options with which figures say nothing, but everything runs."""
Progress = Callable[[str, int, int], None]


COLUMNS = {
    "mode": "",
    "one, s": ".2f",
    QUARTILES: ".2f",
    "rows read": ",",
    "its records": ".1f",
    "asked": ",",
    "all at once, s": ".2f",
    "rows read for all": ",",
    "times one": ".1f",
}


def measure(
    *,
    records: int = 10_000_000,
    asked: int = 1_000,
    repeats: int = 5,
    warm_ups: int = 1,
    modes: Sequence[str] = MODES,
    folder: Path | None = None,
    progress: Progress = lambda doing, done, total: None,
) -> Table:
    """Measures each mode over the same reports."""
    import headwater as hw

    table = Table(f"backward by replay over {records:,} reports", COLUMNS)
    total = 1 + len(modes) * (warm_ups + repeats + 1)
    done = 0
    with tempfile.TemporaryDirectory(prefix="headwater-bench-", dir=folder) as name:
        place = Path(name)
        progress("writing reports", done, total)
        files = max(8, records // 125_000)
        linear_road.generate(place / "reports", reports=records, files=files)
        done += 1
        options = {"maxFilesPerTrigger": str(max(1, files // 10))}
        for mode in modes:
            progress(f"{mode}: running the flow", done, total)
            flow = linear_road.flow(place / "reports", options=options)
            flow.start(store=place / mode, capture=mode, available_now=True).wait()
            done += 1
            with hw.open(place / mode) as store:
                ids = _spread(store, asked)
                single = _spread(store, warm_ups + repeats)
                ones, manies = [], []
                for turn in range(warm_ups + repeats):
                    progress(f"{mode}: asking", done, total)
                    one = _ask(store, [single[turn % len(single)]])
                    many = _ask(store, ids)
                    if turn >= warm_ups:
                        ones.append(one)
                        manies.append(many)
                    done += 1
            one_s = statistics.median(seconds for seconds, _, _ in ones)
            many_s = statistics.median(seconds for seconds, _, _ in manies)
            table.rows.append(
                {
                    "mode": mode,
                    "one, s": one_s,
                    QUARTILES: quartiles([seconds for seconds, _, _ in ones]),
                    "rows read": max(rows for _, rows, _ in ones),
                    "its records": statistics.mean(found for _, _, found in ones),
                    "asked": len(ids),
                    "all at once, s": many_s,
                    "rows read for all": max(rows for _, rows, _ in manies),
                    "times one": many_s / one_s,
                }
            )
        progress("done", total, total)
    return table


def _spread(store: Store, wanted: int) -> list[int]:
    """Results from the whole run, evenly spread over it."""
    ids = store.results("stopped")["result_id"].to_numpy()
    return list(map(int, ids[np.linspace(0, len(ids) - 1, min(wanted, len(ids))).astype(int)]))


def _ask(store: Store, ids: list[int]) -> tuple[float, int, int]:
    begin = time.perf_counter()
    answer = store.backward("stopped", ids, columns=False)
    seconds = time.perf_counter() - begin
    return seconds, store.rows_read, answer.num_rows
