"""Fixtures for live graphs."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def quickly(request: pytest.FixtureRequest) -> None:
    """Plans are run as they are: graphs are about what comes out, not about how it is compiled."""
    if request.node.get_closest_marker("spark"):
        request.getfixturevalue("interpreted")
