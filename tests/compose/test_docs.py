"""The page on flow files shows what the code says."""

from __future__ import annotations

from pathlib import Path

from headwater.compose.tables import updated

PAGE = Path(__file__).parents[2] / "docs" / "flow-files.md"


def test_what_the_page_shows_is_current() -> None:
    text = PAGE.read_text()
    assert text == updated(text), "run python -m headwater.compose.tables on the page"
