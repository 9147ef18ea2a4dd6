"""Deployed flows in tests have few rows: compiling their plans takes longer than running."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _quickly(request: pytest.FixtureRequest) -> None:
    if "spark" in request.fixturenames:
        request.getfixturevalue("interpreted")
