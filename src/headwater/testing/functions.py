"""Python functions for `flat_map` in random flows: importable, so that workers find them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.flow.determinism import deterministic

if TYPE_CHECKING:
    from collections.abc import Iterator

COPIES = "part int, twice int"
WORDS = "word string"


@deterministic
def copies(row: Any) -> Iterator[tuple[int, int | None]]:
    """None to two rows, by the value."""
    for part in range((row.v or 0) % 3):
        yield part, row.v * 2


@deterministic
def words(row: Any) -> list[dict[str, str]]:
    """A row for each letter of the text."""
    return [{"word": letter} for letter in row["s"] or ""]
