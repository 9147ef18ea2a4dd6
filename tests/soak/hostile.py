"""Hostile events: what nobody should send, and what a stream may hold of it.

Each is a request body, and whether the service may take it. One that it may not take must be
refused by a status that says whose fault it is, in one line.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
SCRIPT = "<script>document.title='owned'</script><img src=x onerror=alert(1)>"
TEXTS = (
    SCRIPT,
    "'; drop table results; --",
    "{{7*7}}${7*7}<%= 7*7 %>",
    "\u202eright to left\u202c \ufeff\u200b\u0301",
    "👩‍👩‍👧‍👦 ﷽ Ω≈ç√∫",
    "line\nbreak\r\nand\ttab",
    "../../etc/passwd",
    "x" * 200_000,
    "\x1b[31mred\x1b[0m",
    "NaN",
    "null",
)
"""Texts that a column of text must take, and give back as they are."""


@dataclass(frozen=True, slots=True)
class Attack:
    """A request: what it is called, its body, and the events that are there if it is accepted."""

    name: str
    body: bytes
    events: tuple[dict[str, Any], ...] = ()

    @property
    def may_be_cut_off(self) -> bool:
        """Whether the service may hang up on it: too large to be read to its end."""
        return len(self.body) > 32 << 20

    @property
    def admissible(self) -> bool:
        """Whether it may be accepted."""
        return bool(self.events)


def attacks(first: int, chance: random.Random) -> list[Attack]:
    """A round of hostile requests, whose events have ids from `first` on."""
    number = iter(range(first, first + 1_000))

    def event(**other: Any) -> dict[str, Any]:
        at = BEGIN + timedelta(seconds=first / 10 + chance.uniform(0, 5))
        made = {"n": next(number), "at": at.isoformat(), "text": "calm", "v": 1.0}
        return {**made, **other}

    def fine(name: str, **other: Any) -> Attack:
        one = event(**other)
        return Attack(name, json.dumps([one]).encode(), (one,))

    def bad(name: str, **other: Any) -> Attack:
        return Attack(name, json.dumps([event(**other)]).encode())

    deep = b"[" * 50_000 + b"]" * 50_000
    nested: Any = 1
    for _ in range(400):
        nested = {"a": nested}
    chosen = [
        *(fine("odd text", text=text) for text in TEXTS),
        fine("a number at its limits", v=1.7e308),
        fine("long ago", at="1970-01-01T00:00:00+00:00"),
        fine("not a number", v=float("nan")),
        fine("infinite", v=float("-inf")),
        bad("a wrong type", v="many"),
        bad("a text as id", n="seven"),
        bad("an id beyond 64 bits", n=2**64),
        bad("a fraction as id", n=1.5),
        bad("no time", at="yesterday"),
        bad("the year 12026", at="12026-01-01T00:00:00Z"),
        bad("an unknown column", other=1),
        bad("an object as text", text={"a": 1}),
        Attack("deep JSON", deep),
        Attack("deep object", json.dumps([event(text=nested)]).encode()),
        Attack("no JSON", b"\x00\xff\xfe{]"),
        Attack("half a surrogate", b'[{"n": %d, "text": "\\ud800"}]' % next(number)),
        Attack("nothing", b""),
        Attack("a lone value", b"17"),
        Attack("oversized", b'[{"text": "' + b"y" * (33 << 20) + b'"}]'),
    ]
    chance.shuffle(chosen)
    return chosen


def far_future(number: int) -> Attack:
    """An event at the end of the calendar: after it, everything else is late."""
    one = {"n": number, "at": "9999-12-31T23:59:59+00:00", "text": "far", "v": 0.0}
    return Attack("the end of the calendar", json.dumps([one]).encode(), (one,))
