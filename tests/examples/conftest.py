"""Fixtures for examples."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def quickly(request: pytest.FixtureRequest) -> None:
    """Plans are run as they are: results count, not how they are compiled."""
    if request.node.get_closest_marker("spark"):
        request.getfixturevalue("interpreted")
