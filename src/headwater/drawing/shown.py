"""`store.show`: an answer that a notebook draws."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from headwater.drawing.text import brief, moment, number, said

if TYPE_CHECKING:
    from datetime import datetime

_WIDE = 100
"""Characters of a line of the answer as text."""


@dataclass(frozen=True, slots=True)
class Item:
    """A record or a result."""

    kind: Literal["record", "result"]
    name: str
    """Of its source or sink."""
    id: int
    time: datetime | None = None
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """All that is known of it, a line each."""
        lines = [f"{self.kind} {self.id} of {self.name}"]
        if self.time is not None:
            lines.append(moment(self.time))
        lines += [f"{name} = {brief(said(value), 120)}" for name, value in self.values.items()]
        return "\n".join(lines)


@dataclass(frozen=True)
class Shown:
    """Records, results and what connects them, as a picture.

    A notebook draws it; `svg()` and `html()` are the texts that it draws.
    """

    direction: Literal["backward", "forward"]
    records: tuple[Item, ...]
    results: tuple[Item, ...]
    edges: tuple[tuple[int, int], ...]
    """Places of a record and of a result."""
    total: int
    """How many records, or results if it goes forward, there are: some may be left out."""
    notes: tuple[str, ...] = ()

    @property
    def left_out(self) -> int:
        """How many records, or results, there is no room for."""
        return self.total - len(self.many)

    @property
    def many(self) -> tuple[Item, ...]:
        """The side that may be long: records, or results if it goes forward."""
        return self.records if self.direction == "backward" else self.results

    @property
    def caption(self) -> str:
        """What is shown, and how much of it."""
        what = "record" if self.direction == "backward" else "result"
        count = f"{number(self.total)} {what}{'' if self.total == 1 else 's'}"
        if self.left_out:
            count = f"{number(len(self.many))} of {count}"
        fixed = self.results if self.direction == "backward" else self.records
        whose = _named(fixed)
        if self.direction == "backward":
            return f"{count} behind {whose}"
        return f"{count} of {whose}" if self.total else f"no result of {whose}"

    def svg(self) -> str:
        """The picture alone, as it may be saved to a file."""
        from headwater.drawing.graph import svg

        return svg(self, alone=True)

    def html(self) -> str:
        """The picture, and the rows' own columns below it."""
        from headwater.drawing.page import html

        return html(self)

    def _repr_html_(self) -> str:
        return self.html()

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        lines = [self.caption]
        for sign, item in [
            *(("→", one) for one in self.results),
            *(("·", one) for one in self.records),
        ]:
            time = "" if item.time is None else f"  {moment(item.time)}"
            values = ", ".join(f"{name}={said(value)}" for name, value in item.values.items())
            lines.append("  " + brief(f"{sign} {item.name} {item.id}{time}  {values}", _WIDE - 2))
        return "\n".join([*lines, *self.notes])


def _named(items: tuple[Item, ...]) -> str:
    if not items:
        return "nothing"
    first = items[0]
    if len(items) == 1:
        return f"{first.kind} {first.id} of {first.name}"
    return f"{number(len(items))} {first.kind}s of {first.name}"
