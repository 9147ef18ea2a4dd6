"""A deployment of one job without a host: what is measured of it is set, and so is the clock."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from headwater import streams
from headwater.compose import Composition
from headwater.deploy.building.carried import Carried
from headwater.deploy.monitoring.watching import Watch
from headwater.deploy.records import Change, DeploymentFiles, InputRecord, UnitRecord
from headwater.deploy.units.job import JobUnit
from headwater.runtimes.jobs import JobQueue, job_of

SCHEMA = "n bigint, at timestamp"
FLOW = """
flow: weather
nodes:
  radar: {{source: {{stream: radar, schema: "{schema}", id: n, rate: 1}}}}
  solve: {{job: {{from: radar, run: "true", schema: "n bigint", takes: "{takes} seconds"}}}}
  solved: {{sink: {{from: solve, stream: solved}}}}
"""


class FakeDeployment:
    """What a `Watch` asks of a deployment, with a queue whose totals are given."""

    name, doing = "weather", None

    def __init__(self, folder: Path, takes: float) -> None:
        self.broken: dict[str, str] = {}
        self.making = SimpleNamespace(lines={})
        composition = Composition.parse(FLOW.format(schema=SCHEMA, takes=takes))
        opened = streams.open(folder / "streams")
        opened.create("radar", SCHEMA, event_time="at", id="n")
        self._host = SimpleNamespace(streams=opened)
        self.files = DeploymentFiles(folder / "flows" / self.name)
        record = UnitRecord(
            flow=self.name,
            name="solve",
            version=1,
            runtime="jobs",
            nodes=["solve", "solved"],
            signature="",
            inputs=[InputRecord("radar", "radar")],
            outputs={"solve": ["solved"]},
            carried={},
        )
        self.files.save_unit(record)
        self.files.save_version(Change(1, time.time(), "deploy", [record.id]), composition)
        self.files.save_state(version=1, target=1, wanted="running")
        job = job_of(composition, "solve", version="1")
        self.queue = JobQueue(folder / "queue", job)
        line: Any = SimpleNamespace(queue=self.queue, add=lambda *_: None)
        given = Carried(SCHEMA, made=False, id=("n",))
        unit = JobUnit(record, given, job, line, opened, self.files.save_unit)
        unit._running = True
        self.units = [unit]
        self.watch = Watch(self)  # type: ignore[arg-type]

    def run(self, seconds: int, service: float, rate: float = 1.0) -> dict[str, Any]:
        """Let time pass, with events at a rate through one slot; the status after that."""
        start, told = time.time(), {}
        for second in range(seconds):
            taken = int(second * rate)
            done = min(taken, int(second / service))
            self.queue.database.run(
                "update totals set taken = ?, done = ?, made = ?, compute = ?, framework = ?",
                *(taken, done, done, done * service, done * service / 3),
            )
            told = self.watch.tick(start + second)
        return told
