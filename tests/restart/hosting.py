"""A host in a process of its own, to be killed: `python -m tests.restart.hosting HOME`."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from headwater.deploy import Host


def main() -> None:
    """Runs the flows of a folder until a signal comes."""
    home = Path(sys.argv[1])
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    host = Host(home / "flows", streams=home / "streams", spark=session)
    signal.signal(signal.SIGTERM, lambda *_: host.end())
    with host:
        host.wait()
    session.stop()


if __name__ == "__main__":
    main()
