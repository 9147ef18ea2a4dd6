"""How many events per second publishers get into one stream: threads, and processes of threads."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from headwater.streams.errors import StreamError
from headwater.streams.registry import Streams

SCHEMA = "number bigint, at timestamp, station string, value double"
_NAME = "measured"


@dataclass(frozen=True, slots=True)
class Measured:
    """What publishers did: each event counted is safe, and was found again in the stream."""

    publishers: int
    processes: int
    events: int
    seconds: float
    files: int

    @property
    def rate(self) -> float:
        """Events per second, from the first event to the last one safe."""
        return self.events / self.seconds


def measure(
    publishers: int = 1,
    seconds: float = 2.0,
    *,
    processes: int = 1,
    waiting: bool = False,
    folder: str | None = None,
) -> Measured:
    """Publish small events one by one for some seconds, by as many publishers at once.

    They are threads with a publisher each, shared out among `processes`. With `waiting`, each event
    is published alone and waited for until it is safe.
    """
    if not 1 <= processes <= publishers:
        raise StreamError(f"processes={processes}: give 1 up to the {publishers} publishers")
    place = Path(tempfile.mkdtemp(prefix="headwater-measure-", dir=folder))
    try:
        streams = Streams(place)
        streams.create(_NAME, SCHEMA, event_time="at")
        if processes == 1:
            events, began, ended = _publish(streams, publishers, seconds, waiting)
        else:
            shares = [len(range(n, publishers, processes)) for n in range(processes)]
            events, began, ended = _in_processes(place, shares, seconds, waiting)
        found = streams.describe(_NAME).events
        if events != found:
            raise StreamError(f"{events:,} events were published, and {found:,} are there")
        files = len(list((place / _NAME).glob("*.parquet")))
        return Measured(publishers, processes, events, ended - began, files)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _publish(
    streams: Streams, publishers: int, seconds: float, waiting: bool
) -> tuple[int, float, float]:
    """Publish by threads; how many events, and when it began and ended."""
    counts = [0] * publishers
    failed: list[Exception] = []
    began = time.time()

    def work(number: int) -> None:
        try:
            counts[number] = (_one_by_one if waiting else _in_batches)(streams, began + seconds)
        except Exception as error:  # noqa: BLE001 - raised below, in the thread that measures
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(publishers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return sum(counts), began, time.time()


def _in_batches(streams: Streams, until: float) -> int:
    number, at = 0, datetime.now(UTC)
    with streams.publisher(_NAME) as publisher:
        while time.time() < until:
            for _ in range(100):
                publisher.send({"number": number, "at": at, "station": "KIND", "value": 1.5})
                number += 1
    return publisher.published


def _one_by_one(streams: Streams, until: float) -> int:
    number, at = 0, datetime.now(UTC)
    while time.time() < until:
        event = {"number": number, "at": at, "station": "KIND", "value": 1.5}
        streams.publish(_NAME, event)
        number += 1
    return number


def _in_processes(
    place: Path, shares: list[int], seconds: float, waiting: bool
) -> tuple[int, float, float]:
    command = [sys.executable, "-m", "headwater.streams.measure", str(place), str(seconds)]
    running = [
        subprocess.Popen(
            [*command, str(share), str(int(waiting))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for share in shares
    ]
    for process in running:
        assert process.stdout is not None
        process.stdout.readline()  # it has started, which is not to be measured
    # All at the same moment, however long the others took to start.
    told = []
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in running:
        out, _ = process.communicate()
        if process.returncode:
            raise StreamError(f"a process that was measured failed: exit code {process.returncode}")
        told.append(json.loads(out))
    return (
        sum(events for events, _, _ in told),
        min(began for _, began, _ in told),
        max(ended for _, _, ended in told),
    )


if __name__ == "__main__":
    _, _place, _seconds, _share, _waiting = sys.argv
    print("ready", flush=True)
    sys.stdin.readline()
    _told = _publish(Streams(Path(_place)), int(_share), float(_seconds), bool(int(_waiting)))
    print(json.dumps(_told))
