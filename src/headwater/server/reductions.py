"""Foreign jobs whose provenance comes by REST: kept as files, reduced as they come."""

from __future__ import annotations

import json
import threading
import time
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from headwater.errors import HeadwaterError, RunError, UnknownName
from headwater.streams.files import write_json, write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.reduce.run import Reduction
    from headwater.server.service import Service

FOLDER = ".jobs"
"""In the folder of flows: a folder for each job."""
_SETTINGS = "job.json"


class Reductions:
    """The jobs of a service; of each, elements in files and the reduction that reads them."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._folder = service.flows / FOLDER
        self._lock = threading.RLock()
        self._running: dict[str, Reduction] = {}

    def names(self) -> list[str]:
        """The jobs that have sent something."""
        return sorted(path.parent.name for path in self._folder.glob(f"*/{_SETTINGS}"))

    def add(self, job: str, body: bytes, strategy: str = "grouping") -> dict[str, Any]:
        """Keep elements, safe when this returns, and have them reduced."""
        service = self._service
        service.host  # noqa: B018 - raises where nothing is run
        folder = self._folder / job
        with self._lock:
            known = self._settings(job)
            if known is not None and known["state"] == "finished":
                raise RunError(f"job {job!r} is finished; elements of another run are another job")
            if known is None:
                (folder / "elements").mkdir(parents=True, exist_ok=True)
                write_json(folder / _SETTINGS, {"state": "open", "strategy": strategy})
        # Before anything is kept: what can't be reduced is refused, not taken and forgotten.
        self.start(job)
        lines = sum(1 for line in body.splitlines() if line.strip())
        if lines:
            name = f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}.jsonl"
            data = body if body.endswith(b"\n") else body + b"\n"
            write_whole(folder / "elements" / name, data)
        return {"job": job, "elements": lines}

    def start(self, job: str) -> None:
        """See to it that a job's elements are reduced."""
        from headwater.reduce.run import reduce_job

        with self._lock:
            running = self._running.get(job)
            if running is not None and running.active:
                return
            known = self._settings(job)
            if known is None or known["state"] == "finished":
                return
            self._service.host.spark  # noqa: B018 - its session is the one that is used
            folder = self._folder / job
            (folder / "elements").mkdir(parents=True, exist_ok=True)
            self._running[job] = reduce_job(
                folder / "elements",
                store=self._service.path,
                job=job,
                strategy=known["strategy"],
                checkpoint=folder / "checkpoint",
            )

    def finish(self, job: str) -> dict[str, Any]:
        """Complete a job: what it depends on is then final."""
        with self._lock:
            known = self._settings(job)
            if known is None:
                there = ", ".join(self.names()) or "none"
                raise UnknownName(f"no job {job!r} has sent elements here; there is {there}")
            if known["state"] != "finished":
                self.start(job)
                running = self._running.pop(job)
                # What was acknowledged belongs to the job, though no batch has had it yet.
                running.drain()
                running.finish()
                write_json(self._folder / job / _SETTINGS, {**known, "state": "finished"})
        return {"job": job, "finished": True}

    def resume(self) -> None:
        """Go on with all jobs that are not finished."""
        for job in self.names():
            with suppress(HeadwaterError):
                self.start(job)

    def close(self) -> None:
        """End all reductions for now."""
        with self._lock:
            running, self._running = self._running, {}
        for each in running.values():
            with suppress(Exception):  # Spark may be gone before us
                each.stop()

    def _settings(self, job: str) -> dict[str, Any] | None:
        file: Path = self._folder / job / _SETTINGS
        with suppress(FileNotFoundError, ValueError):
            told: dict[str, Any] = json.loads(file.read_bytes())
            return told
        return None
