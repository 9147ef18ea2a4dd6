"""The units of a flow, made of what was built for them: queries, jobs on their lines, alerts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.compose.frozen import thawed
from headwater.compose.kinds import Function
from headwater.deploy.building.pieces import ALERT
from headwater.deploy.units.alert import AlertUnit
from headwater.deploy.units.function_job import job_of_function
from headwater.deploy.units.job import JobUnit
from headwater.deploy.units.job_line import JobLine
from headwater.deploy.units.query import QueryUnit
from headwater.runtimes.jobs import job_of

if TYPE_CHECKING:
    from headwater.deploy.building.preparing import Built, Preparing
    from headwater.deploy.host import Host
    from headwater.deploy.records import DeploymentFiles, UnitRecord

Unit = QueryUnit | JobUnit | AlertUnit


class Making:
    """Makes the units of one flow, and has the lines of its jobs."""

    def __init__(self, host: Host, files: DeploymentFiles, preparing: Preparing) -> None:
        self._host, self._files, self._preparing = host, files, preparing
        self.lines: dict[str, JobLine] = {}

    def unit(self, built: Built) -> Unit:
        """The unit that was built, ready to be started."""
        record = built.record
        if record.runtime == "jobs":
            return self._job_unit(record)
        if record.runtime == "alerts":
            return self._alert_unit(record)
        assert built.flow is not None
        return QueryUnit(
            record,
            built.flow,
            self._files.unit_folder(record.id),
            self._host.streams,
            str(self._host.store),
            self._host.capture,
            self._files.save_unit,
            self._host.lineage,
        )

    def _job_unit(self, record: UnitRecord) -> JobUnit:
        composition = self._files.composition(record.version)
        change = self._files.change(record.version)
        given, statics = self._preparing.given(record)
        folder, node = change.code or change.folder, composition[record.name]
        if isinstance(node, Function):
            static = {**thawed(node.static), **statics}
            job = job_of_function(record, node, given, static, folder)
        else:
            version = str(record.version)
            job = job_of(composition, record.name, version=version, static=statics, folder=folder)
        return JobUnit(
            record, given, job, self.line(record.name), self._host.streams, self._files.save_unit
        )

    def _alert_unit(self, record: UnitRecord) -> AlertUnit:
        sink: Any = self._files.composition(record.version)[record.name.removesuffix(ALERT)]
        given, _ = self._preparing.given(record)
        return AlertUnit(record, given, sink.alert, self._host.streams, self._files.save_unit)

    def line(self, node: str) -> JobLine:
        """The queue of a job node."""
        if node not in self.lines:
            self.lines[node] = JobLine(
                self._files.folder / "jobs" / node,
                self._host.streams,
                str(self._host.store),
                lambda: self._host.spark,
            )
            for record in self._files.units():
                if record.runtime == "jobs" and record.name == node:
                    self.lines[node].add(record, self._preparing.given(record)[0])
        return self.lines[node]

    def finish_old_jobs(self) -> None:
        """Jobs that were removed or changed still do what they had taken."""
        for folder in (self._files.folder / "jobs").glob("*/queue.db"):
            node = folder.parent.name
            if node not in self.lines:
                self.line(node).start()

    def close(self) -> None:
        """End the lines for now."""
        for line in self.lines.values():
            line.stop()
        self.lines.clear()
