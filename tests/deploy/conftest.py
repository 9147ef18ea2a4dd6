"""Deployed flows in tests have few rows: compiling their plans takes longer than running."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _quickly(request: pytest.FixtureRequest) -> None:
    if "spark" in request.fixturenames:
        request.getfixturevalue("interpreted")


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.long)], ids=["file", "lake"])
def on_lake(request: pytest.FixtureRequest) -> bool:
    """Whether the store of the flows is a lake: a short test of that is in `tests/lake/`."""
    return bool(request.param)
