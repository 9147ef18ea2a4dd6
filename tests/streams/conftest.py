"""A streams folder for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater import streams
from headwater.streams import Streams


@pytest.fixture
def opened(tmp_path: Path) -> Streams:
    """An empty streams folder."""
    return streams.open(tmp_path / "streams")


@pytest.fixture
def radar(opened: Streams) -> Streams:
    """A streams folder with a stream `radar`."""
    opened.create(
        "radar",
        "scan bigint, at timestamp, station string, dbz array<double>",
        event_time="at",
        id="scan",
    )
    return opened
