"""`python -m tests.soak --minutes 30 --seed 1 --report docs/soak.md`."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from tests.soak.report import write
from tests.soak.running import soak
from tests.soak.schedule import KINDS


def main() -> int:
    """Run a soak; 1 if something was wrong."""
    parser = argparse.ArgumentParser(prog="soak")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=40.0)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    given = parser.parse_args()
    # What was started and mounted is to be ended, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = given.folder or Path(tempfile.mkdtemp(prefix="headwater-soak-"))
    print(f"soak of {given.minutes:g} minutes, seed {given.seed}, in {folder}", flush=True)

    def say(text: str) -> None:
        print(text, flush=True)

    report = soak(folder, given.minutes, given.seed, given.rate, given.kinds, say)
    (folder / "report.md").write_text(report.text())
    if given.report is not None:
        write(report, given.report)
    print(report.text())
    return 0 if report.passed else 1


if __name__ == "__main__":
    sys.exit(main())
