"""What tests share: how much to run, and what a test needs from the machine."""

from __future__ import annotations

import os

import pytest

MASTER = "HEADWATER_TEST_MASTER"
"""The environment variable that names another master than the test's own process."""
STORE = "HEADWATER_TEST_STORE"
"""The environment variable that, being `lake`, has the stores of tests be lakes."""

SOURCES = "HEADWATER_TEST_SOURCES"
"""The environment variable that, being `topics`, has the text tables of operators be topics."""


def on_lakes() -> bool:
    """Whether stores are lakes wherever a test does not say."""
    return os.environ.get(STORE) == "lake"


def on_topics() -> bool:
    """Whether the text tables of operators are topics of a broker instead of files."""
    return os.environ.get(SOURCES) == "topics"


def full() -> bool:
    """Whether the long parts run in full: `make test-all`, that is `HEADWATER_TEST=all`."""
    return os.environ.get("HEADWATER_TEST") == "all"


def amount(sample: int, all: int) -> int:
    """How many random cases to run: `all` in `make test-all`, a `sample` in `make test`."""
    return all if full() else sample


def need(what: str, present: object) -> None:
    """Skips a test whose machine lacks something; under CI that is a failure.

    `need("a Kafka broker", shutil.which("kafka-server-start"))`
    """
    if present:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"this machine lacks {what}, and CI must run every test")
    pytest.skip(f"this machine lacks {what}")
