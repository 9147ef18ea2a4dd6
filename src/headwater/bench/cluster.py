"""A real cluster on loopback: Spark's standalone master and workers, each a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from collections.abc import Iterator

HOME = Path(pyspark.__file__).parent
_WAIT = 60.0
"""Seconds that a process may take to start."""


class Cluster:
    """A master and some workers of one core each."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            master = self._start("master", "master.Master", "--host", "127.0.0.1", "--port", "0")
            self.address = self._told("master", master, r"Starting Spark master at (spark://\S+)")
            self.workers = [self._worker(number) for number in range(workers)]
            for number, worker in enumerate(self.workers):
                self._told(f"worker-{number}", worker, r"Successfully registered with master (\S+)")
        except BaseException:
            self.stop()
            raise

    def kill(self, number: int) -> None:
        """Kill a worker with its executors, as a machine that is lost."""
        worker = self.workers[number]
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()

    def stop(self) -> None:
        """End all processes."""
        for process in self._processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _worker(self, number: int) -> subprocess.Popen[bytes]:
        work = self._folder / f"work-{number}"
        options = ("--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--work-dir", str(work))
        return self._start(f"worker-{number}", "worker.Worker", *options, self.address)

    def _start(self, name: str, kind: str, *options: str) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "512m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        }
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [
                    str(HOME / "bin" / "spark-class"),
                    f"org.apache.spark.deploy.{kind}",
                    "--webui-port",
                    "0",
                    *options,
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def _told(self, name: str, process: subprocess.Popen[bytes], pattern: str) -> str:
        """What a process says in its log, once it does."""
        log = self._folder / f"{name}.log"
        until = time.monotonic() + _WAIT
        while time.monotonic() < until:
            if (found := re.search(pattern, log.read_text(errors="replace"))) is not None:
                return found[1]
            if process.poll() is not None:
                break
            time.sleep(0.1)
        last = " ".join(log.read_text(errors="replace").split())[-500:]
        raise HeadwaterError(f"{name} of a cluster on this machine did not start: … {last}")


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A cluster, for as long as it is needed."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Cluster(folder, workers)
    try:
        yield made
    finally:
        made.stop()
