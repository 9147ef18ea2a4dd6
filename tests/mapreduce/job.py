"""The map-reduce that tests kill: `python -m tests.mapreduce.job HOME POINT`.

POINT says where the process kills itself, in the first file or reduce that it comes to: `mapped`
when the output is there and the journal does not know; `committed` when the store has a reduce and
the stream does not; `published` when the stream has it too and the journal does not know.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from headwater.mapreduce.outcomes import Outcomes
from tests.mapreduce.lab import Lab, Local


def die_after(owner: Any, name: str) -> None:
    """Kill this process when a method is through."""
    call = getattr(owner, name)

    def killing(*args: Any, **more: Any) -> Any:
        call(*args, **more)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, killing)


POINTS = {
    "mapped": (Local, "map"),
    "committed": (Outcomes, "commit"),
    "published": (Outcomes, "publish"),
}

if __name__ == "__main__":
    die_after(*POINTS[sys.argv[2]])
    Lab(Path(sys.argv[1])).run()
