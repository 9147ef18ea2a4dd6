"""What was read element by element: the way of lines that are not plainly right, and of documents.

>>> gathered = Gathered("count")
>>> gathered.element(0, {"type": "used", "activity": "m1", "entity": "in-7"})
>>> gathered.element(1, {"type": "usd"})
>>> [edge.source for _, edge in gathered.edges], gathered.rejected[0].reason
(['m1'], "type 'usd' is unknown")
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headwater.reduce.elements import GROUP, Edge, End, Other, Rejected, check, check_group

if TYPE_CHECKING:
    from collections.abc import Mapping

CUT = 4096
"""Bytes of a rejected line that are kept."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """A rejected element: in which row it was, its text, cut, and why."""

    where: int
    line: str
    reason: str


@dataclass(slots=True)
class Gathered:
    """Elements checked one by one, of a job, or of any if it is None."""

    job: str | None
    edges: list[tuple[int, Edge]] = field(default_factory=list)
    filtered: Counter[str] = field(default_factory=Counter)
    ends: list[str | None] = field(default_factory=list)
    rejected: list[Rejection] = field(default_factory=list)

    def line(self, where: int, told: Mapping[str, Any], text: str) -> None:
        """Takes an element or a group; of a group's elements the bad ones are rejected."""
        if told.get(GROUP) is None:
            self.element(where, told, text=text)
            return
        try:
            elements, defaults = check_group(told, self.job)
        except Rejected as error:
            self.reject(where, text, str(error))
            return
        for number, element in enumerate(elements, start=1):
            self.element(where, element, defaults, label=f"element {number} of the group: ")

    def element(
        self,
        where: int,
        told: object,
        group: Mapping[str, Any] | None = None,
        label: str = "",
        text: str | None = None,
    ) -> None:
        """Takes one element; `label` says which it is, where its text does not."""
        try:
            match check(told, self.job, group):
                case Edge() as edge:
                    self.edges.append((where, edge))
                case Other(type):
                    self.filtered[type] += 1
                case End(job):
                    self.ends.append(job or self.job)
        except Rejected as error:
            shown = json.dumps(told, ensure_ascii=False) if text is None else text
            self.reject(where, shown, f"{label}{error}")

    def reject(self, where: int, text: str, reason: str) -> None:
        """Puts something aside."""
        self.rejected.append(Rejection(where, cut(text), reason))


def cut(text: str) -> str:
    """The text without what is beyond so many bytes of UTF-8, and without half characters.

    >>> len(cut("é" * 5000))
    2048
    """
    data = text[:CUT].encode("utf-8", "replace")
    return data[:CUT].decode("utf-8", "ignore")
