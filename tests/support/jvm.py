"""Quick starts of the JVMs of tests: `python -m tests.support.jvm` makes what they share.

A JVM of Spark loads and checks some ten thousand classes before its first row, which is most of
what a process of a few seconds takes. An archive of them, made once for an installation of Spark,
halves it. Without the archive, or with one of another installation, all is the same but slower.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
VARIABLE = "SPARK_SUBMIT_OPTS"
"""The environment variable with options for each JVM that `spark-submit` starts."""
LIGHT = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""They live for seconds: thorough compilation costs twice what it saves."""
QUIET = "-Xlog:disable -Xlog:all=error:stderr"
"""A JVM that can't use the archive would say so between the lines of a command's output."""


def archive() -> Path:
    """Where the archive is for the Spark and Java that are here."""
    spark = find_spec("pyspark")
    assert spark is not None
    assert spark.origin is not None
    jars = Path(spark.origin).parent / "jars"
    java = os.environ.get("JAVA_HOME") or os.path.realpath(shutil.which("java") or "")
    known = f"{jars} {jars.stat().st_mtime_ns} {java}"
    return ROOT / ".cache" / f"classes-{hashlib.sha256(known.encode()).hexdigest()[:12]}.jsa"


def options() -> str:
    """What the JVMs of tests are started with."""
    made = archive()
    return f"{LIGHT} {QUIET} -XX:SharedArchiveFile={made}" if made.exists() else LIGHT


def quicken() -> None:
    """Have every JVM that this process and its children start be quick, whoever starts it."""
    os.environ.setdefault(VARIABLE, options())


def make() -> None:
    """Make the archive, from a run of a flow in which most of Spark's classes are at work."""
    made = archive()
    if made.exists():
        return
    made.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=made.parent) as folder:
        new = Path(folder) / made.name
        environment = {
            **os.environ,
            VARIABLE: f"{LIGHT} {QUIET} -XX:ArchiveClassesAtExit={new}",
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        command = [sys.executable, "-m", "tests.support.jvm", folder]
        subprocess.run(command, env=environment, cwd=ROOT, check=True, timeout=600)
        new.rename(made)


def run(home: Path) -> None:
    """Run that flow, and wait until its JVM has ended."""
    from pyspark import SparkContext

    from tests.restart import job

    job.generate(home, sources=2, files=2, seed=1)
    spark = job.session()
    started = job.flow(spark, home).start(
        store=str(home / "store"), capture="eager", available_now=True
    )
    started.wait()
    spark.stop()
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    process = gateway.proc
    process.stdin.close()
    process.wait()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(Path(sys.argv[1]))
    else:
        make()
