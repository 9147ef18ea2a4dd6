"""The publisher that tests kill: `python -m tests.streams.job FOLDER WRITER BATCHES [POINT BATCH]`.

It publishes batches of ten numbers under counted keys of the WRITER and says each one's number when
it is safe.
POINT says where in a batch it kills itself: `write` before the file is written, `rename` before it
has its name, `index` before the index knows it, `safe` before it is acknowledged.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from headwater import streams
from headwater.streams import index, parquet, parquet_files

SIZE = 10


def events(batch: int) -> list[dict[str, Any]]:
    return [{"number": batch * SIZE + place} for place in range(SIZE)]


POINTS: dict[str, tuple[Any, str]] = {
    "write": (parquet_files, "write"),
    "rename": (Path, "rename"),
    "index": (index.Index, "record"),
    "safe": (parquet, "sync_folder"),
}
"""What is called at each point of publishing a batch."""


def kill_at(point: str, batch: int) -> None:
    """Arrange for this process to be killed at a point of a batch of those it still publishes."""
    owner, name = POINTS[point]
    former, calls = getattr(owner, name), 0

    def killing(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > batch:
            os.kill(os.getpid(), signal.SIGKILL)
        return former(*args, **kwargs)

    setattr(owner, name, killing)


def main(folder: str, writer: str, batches: str, *kill: str) -> None:
    opened = streams.open(folder)
    if kill:
        kill_at(kill[0], int(kill[1]))
    for batch in range(int(batches)):
        receipt = opened.publish("numbers", events(batch), key=(writer, batch))
        print(batch, receipt.events, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
