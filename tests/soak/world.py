"""The world of a soak: a disk of its own, the service on it, and those who publish and read."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headwater import streams
from headwater.capture.checkpoint import Checkpoint
from headwater.deploy.records import DeploymentFiles
from tests.restart.serving import Served
from tests.soak import flows
from tests.soak.publishing import Publisher, Supply, grid, traffic

STEADY = 3.0
"""Seconds for which all must be well to be called so."""
CALM = 6.0
"""Seconds without a batch after which all is done."""


_SPARK = """
spark.sql.streaming.minBatchesToRetain 10000000
spark.sql.codegen.wholeStage false
spark.sql.codegen.factoryMode NO_CODEGEN
"""
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The service lives for a minute or two at a time: compiling its code or its plans never pays."""


class World:
    """Everything that runs, in a folder; `disk` is a small disk if one could be mounted."""

    def __init__(self, folder: Path, seed: int, rate: float, environment: dict[str, str]) -> None:
        self.folder, self.seed, self.rate = folder, seed, rate
        self.home = folder / "disk"
        self.home.mkdir(parents=True, exist_ok=True)
        self.ledger = folder / "readings.ledger"
        conf = folder / "conf"
        conf.mkdir(exist_ok=True)
        # The checker needs to know of every batch.
        (conf / "spark-defaults.conf").write_text(_SPARK)
        environment = {"SPARK_CONF_DIR": str(conf), "JDK_JAVA_OPTIONS": _JAVA, **environment}
        self.served = Served(self.home, folder / "serve.log", environment)
        self.publisher = Publisher(self.served, traffic(seed), rate)
        self.readings: Supply = grid(seed)
        self.readings_acknowledged = 0
        self._process: subprocess.Popen[bytes] | None = None

    # --- beginning and ending -----------------------------------------------------------------

    def begin(self) -> None:
        """Start the service, deploy the flows, start publishing."""
        self.served.start()
        for name, declared in flows.STREAMS.items():
            self.served.call("POST", "/api/streams", {"name": name, **declared})
        for text in flows.FLOWS.values():
            self.served.call("POST", "/api/flows", {"text": text, "since": "start"})
        self.publisher.start()
        self.publish_readings()

    def publish_readings(self) -> None:
        """Start the publisher of readings, a process of its own."""
        command = [sys.executable, "-m", "tests.soak.publishing", str(self.home), str(self.ledger)]
        with (self.folder / "publisher.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, str(self.seed), str(self.rate)], stdout=log, stderr=log
            )

    def kill_publisher(self) -> None:
        """`kill -9` to the publisher of readings."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Nobody publishes meanwhile."""
        assert self._process is not None
        self.kill_publisher()
        try:
            with self.publisher.turn:
                yield
        finally:
            self.publish_readings()

    # --- the service --------------------------------------------------------------------------

    def jvm(self) -> int | None:
        """The process of Spark's JVM."""
        if self.served.pid is None:
            return None
        found = subprocess.run(
            ["ps", "-o", "pid=,comm=", "--ppid", str(self.served.pid)],
            capture_output=True,
            text=True,
            check=False,
        )
        for line in found.stdout.splitlines():
            pid, name = line.split(maxsplit=1)
            if name.strip() == "java":
                return int(pid)
        return None

    def restart(self) -> None:
        """Start the service again, whatever is left of it."""
        with contextlib.suppress(ProcessLookupError, AssertionError):
            self.served.kill()
        self.served.start()

    def is_well(self, behind: float | None = None) -> str | None:
        """Why not all flows run, if they do not, or are `behind` by more seconds of events."""
        try:
            told = self.served.call("GET", "/api/flows")["flows"]
            states = {each["flow"]: each["state"] for each in told}
            if set(states) != set(flows.FLOWS):
                return f"flows are {states}"
            for name in flows.FLOWS:
                status = self.served.call("GET", f"/api/flows/{name}/status")
                for unit in status["units"]:
                    if unit["state"] not in ("running", "ended"):
                        return f"unit {unit['id']} is {unit['state']}: {unit.get('error')}"
                    if behind is not None and unit["in_transit"] > behind * self.rate:
                        return f"unit {unit['id']} is {unit['in_transit']} events behind"
        except (OSError, AssertionError) as error:
            return f"{type(error).__name__}: {error}"
        return None

    def until_well(self, seconds: float, behind: float | None = None) -> str | None:
        """Wait until all flows run, and keep up; why not, if that takes too long."""
        until, since = time.monotonic() + seconds, time.monotonic()
        while True:
            why, now = self.is_well(behind), time.monotonic()
            since = since if why is None else now
            # A query that fails looks well for a moment, each time that it is tried again.
            if (why is None and now - since > STEADY) or now > until:
                return why
            time.sleep(0.3)

    # --- the end ------------------------------------------------------------------------------

    def close(self) -> None:
        """Publish no more, close every window, and stop the service once all is done."""
        self.publisher.end()
        self.kill_publisher()
        registry = streams.open(self.home / "streams")
        last = self.publisher.supply.last(self.publisher.acknowledged)
        self.publisher.send([last], "reports-last")
        number = self.readings_acknowledged = self.chunks_of_readings()
        registry.publish(
            "readings", [self.readings.last(number)], key="readings-last", consent=True
        )
        self.drain()
        assert self.served.stop() == 0

    def chunks_of_readings(self) -> int:
        """How many chunks of readings are there; the last may not be in the ledger."""
        registry = streams.open(self.home / "streams")
        events = registry.describe("readings").events
        assert events % self.readings.chunk == 0, events
        return events // self.readings.chunk

    def drain(self, seconds: float = 240.0) -> None:
        """Wait until no unit has anything to do."""
        until, seen, since = time.monotonic() + seconds, None, time.monotonic()
        while time.monotonic() < until:
            now = self._batches()
            if now != seen or now is None:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > CALM:
                return
            time.sleep(0.3)
        raise AssertionError(f"the flows do not come to an end: {self.is_well()}, {seen}")

    def _batches(self) -> tuple[Any, ...] | None:
        """How far all units are, by their files; None while one has something left."""
        registry, found = streams.open(self.home / "streams"), []
        for deployed in (self.home / "flows").glob("*/deployment.json"):
            files = DeploymentFiles(deployed.parent)
            for record in files.units():
                if record.ended or not record.is_query:
                    continue
                place = Checkpoint.at(str(files.unit_folder(record.id) / "checkpoint"))
                batch = place._newest("commits")
                if batch != place._newest("offsets"):
                    return None
                for each in record.inputs:
                    readers = registry.describe(each.stream).consumers
                    lag = {reader.consumer: reader.lag for reader in readers}
                    if lag.get(record.flow_name) != 0:
                        return None
                found.append((record.flow_name, batch))
        return tuple(sorted(found))

    def abandon(self) -> None:
        """End whatever still runs."""
        self.publisher._ending.set()
        with contextlib.suppress(Exception):
            self.kill_publisher()
        with contextlib.suppress(Exception):
            self.served.kill()


def signal_process(pid: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to a process that may be gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def remove(folder: Path) -> None:
    """Remove a folder, all of it."""
    shutil.rmtree(folder, ignore_errors=True)
