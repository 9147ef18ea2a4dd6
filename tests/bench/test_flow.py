"""What composing and coupling flows costs: the tables, on small sizes."""

from __future__ import annotations

import pytest

from headwater.bench.flow import measure


def test_there_is_no_other_part() -> None:
    with pytest.raises(ValueError, match="no part 'speed'"):
        next(measure("speed"))
