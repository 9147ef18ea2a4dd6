"""The cascade deployed: the lengths of its queues second by second, and what sustain says of them.

`python -m headwater.examples.weather.cascade run --seconds 60` deploys `cascade.yaml`, publishes
its events, and looks at every queue once a second.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.compose import Composition
from headwater.compose.frozen import Table
from headwater.compose.kinds import Function
from headwater.deploy import Host
from headwater.deploy.monitoring.measuring import waiting
from headwater.errors import HeadwaterError, RunError
from headwater.examples.weather import cascade, flow_file
from headwater.sustain.flows import forecast_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from headwater.deploy import Deployment
    from headwater.streams import Streams

SIZE = 900
"""Equations that each workflow solves for an event, as the file says."""
PERIOD = 8
"""Seconds of a wave of events."""
READS = {"A": "events", "B": "cascade.A_B", "C": "cascade.B_C"}
READS |= {"D": "events", "E": "cascade.D_E", "F": "cascade.E_F"}
"""The workflows, and the streams whose events wait for them."""
_FILTERS = ("A_B", "B_C", "D_E", "E_F")
_WARM = 1_000_000
"""The number of an event before the others, which waits for everything to start."""
_PATIENCE = 300.0


@dataclass(frozen=True, slots=True)
class Queues:
    """What was seen of the cascade."""

    size: int
    service: float
    """Seconds of a core that an event takes in a workflow, without all that is around it."""
    events: tuple[int, ...]
    """How many came in each second."""
    lengths: Mapping[str, tuple[int, ...]]
    """Events in transit in each workflow at the end of each second."""
    times: Mapping[str, float]
    """Seconds from an event's coming into a workflow to its going out, on average."""
    expected: Mapping[str, float]
    """The lengths of M/M/1 queues with that service time, as `headwater flow sustain` has them."""
    solved: int
    """Events that came out of the join."""

    @property
    def rate(self) -> float:
        """Events a second."""
        return sum(self.events) / len(self.events)

    def little(self, node: str) -> float:
        """The mean length by Little's law: how many come, times how long each stays."""
        seen = len(self.lengths[node])
        return sum(self.events) / seen * self.times[node]

    def wave(self, node: str) -> float | None:
        """How much of the ups and downs of a length has the period of the events, of 1.

        It needs two waves.
        """
        waves = len(self.events) // PERIOD
        if waves < 2:
            return None
        row = np.array(self.lengths[node][: waves * PERIOD], np.float64)
        power = np.abs(np.fft.rfft(row - row.mean())) ** 2
        return float(power[waves] / power.sum()) if power.sum() else 0.0

    def text(self) -> str:
        """The matrix of lengths, and means beside what they should be."""
        lengths = {"events": self.events, **self.lengths}
        wide = max(len(str(max(row))) for row in lengths.values()) + 1
        lines = [
            f"{name:>6} " + "".join(f"{value:>{wide}}" for value in row)
            for name, row in lengths.items()
        ]
        came = f"{sum(self.events)} events in {len(self.events)} s, {self.solved} solved"
        lines += [
            "",
            f"{came}; {self.size} equations take {self.service * 1e3:.0f} ms",
            "",
            f"{'':>6} {'mean':>7} {'most':>7} {'stay':>8} {'Little':>8} {'M/M/1':>8} {'wave':>6}",
        ]
        for name, row in self.lengths.items():
            wave = self.wave(name)
            lines.append(
                f"{name:>6} {sum(row) / len(row):>7.2f} {max(row):>7} {self.times[name]:>6.2f} s "
                f"{self.little(name):>8.2f} {self.expected[name]:>8.2f} "
                f"{'' if wave is None else f'{wave:.0%}':>6}"
            )
        return "\n".join(lines)


def run(
    folder: str | os.PathLike[str],
    *,
    seconds: int = 60,
    size: int = SIZE,
    spark: SparkSession | None = None,
) -> Queues:
    """Deploys the cascade in a folder, has its events come, and looks until all are done."""
    if seconds < 1 or size < 1:
        raise HeadwaterError(f"seconds={seconds}, size={size}: give 1 or more")
    flow = sized(size)
    place = Path(folder)
    with Host(place / "flows", streams=place / "streams", spark=spark) as host:
        deployment = host.deploy(flow)
        host.streams.publish("events", _events([{"event": _WARM, "at": datetime.now(UTC)}]))
        if not host.drain(_PATIENCE):
            raise RunError(f"the cascade did not start: {_troubles(deployment)}")
        lengths: dict[str, list[int]] = {name: [] for name in READS}
        came, units = [], {unit.record.name: unit for unit in deployment.units}
        began, rows = time.monotonic(), iter(cascade.events(seconds, datetime.now(UTC)))
        while (now := next(rows, None)) is not None or any(row[-1] for row in lengths.values()):
            if now:
                host.streams.publish("events", _events(now))
            if now is not None:
                came.append(len(now))
            time.sleep(max(0.0, began + len(lengths["A"]) + 0.95 - time.monotonic()))
            for name, row in lengths.items():
                row.append(waiting(units[name]))
            if len(lengths["A"]) > seconds + _PATIENCE:
                raise RunError(f"the cascade does not end: {_troubles(deployment)}")
        host.drain(_PATIENCE)
        times = {name: _stay(host.streams, stream, name) for name, stream in READS.items()}
        solved = host.streams.describe("solved").events - 1
    service = _service(size)
    told = forecast_of(
        flow,
        rates={"events": sum(came) / seconds},
        service=dict.fromkeys(READS, service),
        cardinality=dict.fromkeys(_FILTERS, 1.0),
    )
    transit = {f.node: f.in_transit for f in told.forecasts}
    expected = {n: float("inf") if transit[n] is None else float(transit[n] or 0) for n in READS}
    seen = {name: tuple(row) for name, row in lengths.items()}
    return Queues(size, service, tuple(came), seen, times, expected, solved)


def sized(size: int) -> Composition:
    """The cascade with systems of so many equations."""
    flow = Composition.read(flow_file("cascade"))
    for name in READS:
        node = flow[name]
        assert isinstance(node, Function)
        flow = flow.replace(name, replace(node, static=Table(size=size)))
    return flow


def _events(rows: Sequence[Mapping[str, object]]) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows])


def _service(size: int) -> float:
    """Seconds that a system of equations takes in a process like Spark's workers."""
    told = f"from headwater.examples.weather.queues import alone; print(alone({size}))"
    given = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", told], env=given, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def alone(size: int, times: int = 5) -> float:
    """Seconds of a core that a system of equations takes, once everything is loaded."""
    batch = pa.RecordBatch.from_pydict({"event": [_WARM]})
    cascade.solve(batch, size)
    began = time.process_time()
    for _ in range(times):
        cascade.solve(batch, size)
    return (time.process_time() - began) / times


def _stay(streams: Streams, came: str, node: str) -> float:
    """The mean of the times between an event's commit before a workflow and behind it."""
    before, after = (_commits(streams, name) for name in (came, f"cascade.{node}"))
    stays = [after[event] - at for event, at in before.items() if event != _WARM]
    return sum(stays) / len(stays)


def _commits(streams: Streams, name: str) -> dict[int, float]:
    return {
        event: batch.at / 1_000
        for batch in streams.read(name)
        for event in batch.table["event"].to_pylist()
    }


def _troubles(deployment: Deployment) -> str:
    told = [f"unit {unit.record.id}: {unit.error}" for unit in deployment.units if unit.error]
    return "; ".join(told) or "it takes too long"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cascade, and prints what was seen."""
    import argparse

    parser = argparse.ArgumentParser(
        prog="python -m headwater.examples.weather.cascade run",
        description="Deploy the cascade, publish its events, and measure its queues.",
    )
    parser.add_argument("--seconds", type=int, default=60, help="for how long events come; 60")
    parser.add_argument("--size", type=int, default=SIZE, help=f"equations of a system; {SIZE}")
    parser.add_argument("--folder", metavar="DIR", help="where to deploy it; else nothing is kept")
    parser.add_argument("--picture", metavar="FILE", type=Path, help="an SVG to write")
    given = parser.parse_args(arguments)
    # Workers share the cores already: threads within each would only wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from headwater.cli.spark import session

    try:
        with tempfile.TemporaryDirectory() as scratch, session() as spark:
            seen = run(given.folder or scratch, seconds=given.seconds, size=given.size, spark=spark)
    except HeadwaterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(seen.text())
    if given.picture is not None:
        from headwater.examples.weather.cascade_picture import picture

        given.picture.write_text(picture(seen), encoding="utf-8")
    return 0
