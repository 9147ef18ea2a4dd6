"""The lab of operators: its text tables are topics where the environment asks for that."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kafka.conftest import kafka, topics  # noqa: F401
from tests.support import on_topics
from tests.support.streams import Lab


@pytest.fixture(autouse=True)
def _with_tables(request: pytest.FixtureRequest) -> None:
    if on_topics() and "lab" not in request.fixturenames:
        pytest.skip("the test runs no flow, so that nothing of it could be a topic")


@pytest.fixture
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Lab:
    """A place for a test's streams and stores."""
    if not on_topics():
        return Lab(tmp_path)
    from tests.kafka.tables import TopicTables

    return Lab(tmp_path, TopicTables(request.getfixturevalue("topics")))
