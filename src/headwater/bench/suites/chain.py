"""SAF's Figure 12: throughput of a chain of 2 to 15 components, each of which maps every event."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headwater.bench import streams
from headwater.bench.harness import Case
from headwater.bench.lab import OPTIONS, Lab
from headwater.bench.report import RATES, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from headwater import Flow, Frame
    from headwater.flow.nodes import Keep

COMPONENTS = (2, 5, 10, 15)
RECORDS = 100_000
PAYLOAD = 100


def tables(lab: Lab, components: Sequence[int] = COMPONENTS) -> Iterator[Table]:
    """One table: each length of the chain, in each mode."""
    records = lab.records or RECORDS
    lab.writing(f"{records:,} events")
    data = streams.events(lab.folder / "events", records, PAYLOAD, lab.files)
    table = Table(
        f"Chains of maps (SAF's Figure 12), {records:,} events of {PAYLOAD} bytes, "
        f"medians of {lab.pairs}",
        {"components": ",", **RATES},
    )
    cases = [
        Case({"components": number}, records, lab.captured(partial(flow, lab, data, number)))
        for number in components
    ]
    for outcome in lab.compare(cases):
        table.add(outcome)
    yield table


def flow(
    lab: Lab, data: Path, components: int, *, keep: Keep | None = None, contents: bool = True
) -> Flow:
    """A chain into a sink, with the contents of its results or without."""
    import headwater as hw

    flow = hw.Flow("chain", lab.spark)
    events = flow.source(
        "events",
        format="parquet",
        path=data,
        schema=streams.EVENTS,
        event_time="ts",
        id="id",
        options=OPTIONS,
        keep=keep,
    )
    mapped = turned(events, components)
    flow.sink("mapped", mapped if contents else mapped.select("id", "ts"))
    return flow


def turned(events: Frame, components: int) -> Frame:
    """The events after so many components, each of which turns the content by one byte."""
    from pyspark.sql import functions as F

    for _ in range(components):
        events = events.withColumn(
            "payload", F.expr("concat(substring(payload, 2), substring(payload, 1, 1))")
        )
    return events
