"""What operators over arrival order cost, by number of keys; a native window beside them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from headwater.bench import streams
from headwater.bench.harness import Case
from headwater.bench.lab import OPTIONS
from headwater.bench.report import RATES, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from headwater import Flow, Frame
    from headwater.bench.lab import Lab

KEYS = (1, 1_000, 100_000)
RECORDS = 1_000_000
GOALS = {("count_window", 1_000): 100_000, ("count_window", 100_000): 50_000}
"""Events a second that an operator is to reach in `eager`, by the number of keys."""

Operator: TypeAlias = "Callable[[Frame, Frame], Frame]"


def _window(events: Frame, _: Frame) -> Frame:
    from pyspark.sql import functions as F

    time = F.window("ts", "10 seconds")
    return events.groupBy("k", time).agg(F.count("*").alias("n"), F.sum("v").alias("v"))


def _count_window(size: int, slide: int, events: Frame, _: Frame) -> Frame:
    from pyspark.sql import functions as F

    made = F.count("*").alias("n"), F.sum("v").alias("v")
    return events.count_window(size, slide).by("k").agg(*made)


def _value_window(events: Frame, _: Frame) -> Frame:
    from pyspark.sql import functions as F

    windows = events.value_window("10 seconds", "10 seconds", "ts").by("k")
    return windows.agg(F.count("*").alias("n"), F.sum("v").alias("v"))


def _renamed(frame: Frame) -> Frame:
    return frame.selectExpr("k", "ts AS at", "v AS w")


OPERATORS: dict[str, Operator] = {
    "window": _window,
    "count_window": partial(_count_window, 10, 10),
    "count_window, sliding": partial(_count_window, 10, 1),
    "value_window": _value_window,
    "b_sort": lambda a, b: a.b_sort(10, "v", by="k"),
    "merge": lambda a, b: a.merge(b),
    "join_latest": lambda a, b: a.join_latest(_renamed(b), "k"),
    "join_last": lambda a, b: a.join_last(_renamed(b), "k", left=1, right=1),
    "join_value": lambda a, b: a.join_value(_renamed(b), "ts", "at", "2 seconds", "k"),
    "match": lambda a, b: a.match(
        "A B+",
        by="k",
        define={"A": "v > 900", "B": "v < 500"},
        measures={"n": "count(*)", "least": "min(B.v)"},
    ),
}


def tables(
    lab: Lab, keys: Sequence[int] = KEYS, operators: Sequence[str] = tuple(OPERATORS)
) -> Iterator[Table]:
    """One table: each operator with each number of keys, in each mode."""
    records = lab.records or RECORDS
    cases = []
    for number in keys:
        sides = []
        for side in range(2):
            lab.writing(f"{records:,} events of {number:,} keys")
            # The second stream is a tenth: what is joined to.
            size = records if side == 0 else max(1, records // 10)
            folder = lab.folder / f"keyed-{number}-{side}"
            sides.append(streams.keyed(folder, size, number, lab.files, first=side * records))
        for name in operators:
            make = partial(_flow, lab, name, sides)
            cases.append(Case({"operator": name, "keys": number}, records, lab.captured(make)))
    table = Table(
        f"Operators, {records:,} events, medians of {lab.pairs}",
        {"operator": "", "keys": ",", **RATES},
    )
    for outcome in lab.compare(cases):
        table.add(outcome)
    for row in table.rows:
        wanted = GOALS.get((row["operator"], row["keys"]))
        if wanted is not None and row["mode"] == "eager" and "records/s" in row:
            met = row["records/s"] >= wanted
            table.notes.append(
                f"{row['operator']}, {row['keys']:,} keys: {row['records/s']:,} events/s, "
                f"the goal of {wanted:,} is {'met' if met else 'missed'}"
            )
    yield table


def _flow(lab: Lab, operator: str, sides: list[Path]) -> Flow:
    import headwater as hw

    flow = hw.Flow("operators", lab.spark)
    frames = [
        flow.source(
            name,
            format="parquet",
            path=data,
            schema=streams.KEYED,
            event_time="ts",
            watermark="0 seconds",
            id="id",
            options=OPTIONS,
        )
        for name, data in zip(("events", "others"), sides, strict=True)
    ]
    flow.sink("results", OPERATORS[operator](*frames))
    return flow
