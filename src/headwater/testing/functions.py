"""Python functions for steps of random flows: importable, so that workers find them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from headwater.flow.determinism import deterministic

if TYPE_CHECKING:
    from collections.abc import Iterator

COPIES = "part int, twice int"
WORDS = "word string"
DOUBLED = "twice int, wide boolean"
RATED = "rate double"
EXTREMES = "end string, value int, of array<int>"


@deterministic
def copies(row: Any) -> Iterator[tuple[int, int | None]]:
    """None to two rows, by the value."""
    for part in range((row.v or 0) % 3):
        yield part, row.v * 2


@deterministic
def words(row: Any) -> list[dict[str, str]]:
    """A row for each letter of the text."""
    return [{"word": letter} for letter in row["s"] or ""]


@deterministic
def doubled(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each row: twice the value, and whether the text has several letters."""
    return pd.DataFrame({"twice": rows["v"] * 2, "wide": rows["s"].fillna("").str.len() > 1})


@deterministic
def rated(event: dict[str, Any], least: int) -> dict[str, float]:
    """A service that fails for small values, and for none."""
    if event["v"] is None or event["v"] < least:
        raise LookupError(f"{event['v']} is less than {least}")
    return {"rate": event["v"] / (event["k"] or 3)}


@deterministic
def extremes(rows: pd.DataFrame) -> dict[str, list[Any]]:
    """The greatest and the least value of a group, each with the places where it is."""
    values = rows["v"].tolist()
    known = [value for value in values if not pd.isna(value)]
    made: dict[str, list[Any]] = {"end": [], "value": [], "of": []}
    for end, best in (("max", max(known)), ("min", min(known))) if known else ():
        made["end"].append(end)
        made["value"].append(int(best))
        made["of"].append([i for i, value in enumerate(values) if value == best])
    return made
