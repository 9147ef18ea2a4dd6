"""A Kafka broker of the tests' own, from `scripts/kafka`, and Spark's connector to it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support import need

_ROOT = Path(__file__).resolve().parents[2]
_SCRIPT = _ROOT / "scripts" / "kafka"


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker that runs, and what Spark needs to talk to it."""

    servers: str
    jars: str
    """The connector's jars, as `spark.jars` takes them."""
    folder: Path | None = None

    def signal(self, number: int) -> None:
        """Send the broker a signal; `restart` brings it back if that has ended it."""
        assert self.folder is not None
        os.kill(int((self.folder / "pid").read_text()), number)

    def restart(self) -> None:
        """Kill the broker, if it runs, and start it again where it was."""
        _script("restart", self.folder, os.getpid())

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a process whose Spark has the connector, as users give it."""
        return {**os.environ, "PYSPARK_SUBMIT_ARGS": f"--jars {self.jars} pyspark-shell"}


@contextmanager
def broker(folder: Path) -> Iterator[Broker]:
    """A broker with its data in a new folder; it ends with the block, and with this process.

    A test that can't get one is skipped, under CI it fails.
    """
    jars = _script("jars").split()
    servers = _script("start", folder, os.getpid()).strip()
    try:
        yield Broker(servers, ",".join(jars), folder)
    finally:
        subprocess.run([_SCRIPT, "stop", folder], check=True, timeout=120)


def _script(*arguments: object) -> str:
    command = [str(word) for word in (_SCRIPT, *arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    told = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    need(f"a Kafka broker (scripts/kafka {arguments[0]}: {told[-1]})", done.returncode == 0)
    return done.stdout
