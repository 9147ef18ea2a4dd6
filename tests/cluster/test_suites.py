"""The suites of one machine, once more: on two workers, with lakes as stores, over topics."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from headwater.bench.cluster import cluster
from tests.support import MASTER, SOURCES, STORE

LONG = pytest.mark.long
SUITES = (
    "tests/operators",
    "tests/random_flows/test_random_flows.py",
    "tests/live/test_checked_graphs.py",
)


@pytest.mark.parametrize(
    ("suite", "workers", "store", "sources"),
    [
        ("tests/operators/test_union.py", 2, "lake", "files"),
        ("tests/operators/test_union.py", 0, "file", "topics"),
        *(
            pytest.param(suite, 2, store, "files", marks=LONG)
            for suite in SUITES
            for store in ("file", "lake")
        ),
        *(pytest.param(suite, 0, "lake", "files", marks=LONG) for suite in SUITES),
        # Random flows and graphs over topics are in tests/kafka.
        *(
            pytest.param("tests/operators", 0, store, "topics", marks=LONG)
            for store in ("file", "lake")
        ),
    ],
)
def test_a_suite(suite: str, workers: int, store: str, sources: str, tmp_path: Path) -> None:
    with cluster(tmp_path / "cluster", workers) if workers else nullcontext() as made:
        environment = {**os.environ, STORE: store, SOURCES: sources}
        environment.pop("HEADWATER_TEST", None)
        if made is not None:
            environment[MASTER] = made.address
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", suite],
            env={name: value for name, value in environment.items() if "PYTEST" not in name},
            capture_output=True,
            text=True,
            check=False,
            timeout=3000,
        )
    assert done.returncode == 0, done.stdout[-6000:]
    assert " passed" in done.stdout
