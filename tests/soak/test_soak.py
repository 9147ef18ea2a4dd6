"""A short soak: every kind of fault, and the checker at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.running import soak
from tests.soak.schedule import KINDS


@pytest.mark.long
def test_a_short_soak_passes(tmp_path: Path) -> None:
    report = soak(tmp_path, minutes=3.0, seed=11)
    assert report.passed, report.text()
    assert len({outcome.kind for outcome in report.outcomes}) > len(KINDS) // 3
    assert report.checked["graph edges"] > 0
