"""Windows over map outputs: which files are in, and when that changes.

Every change is one reduce. A length window changes when a file comes; a time window also when the
time of a file in it has passed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from headwater.compose.durations import microseconds
from headwater.errors import FlowError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SHORT = {
    "us": "microseconds",
    "ms": "milliseconds",
    "s": "seconds",
    "sec": "seconds",
    "m": "minutes",
    "min": "minutes",
    "mins": "minutes",
    "h": "hours",
    "d": "days",
}


@dataclass(frozen=True, slots=True)
class Length:
    """The latest so many files."""

    files: int

    def __post_init__(self) -> None:
        if type(self.files) is not int or self.files < 1:
            raise FlowError(f"length({self.files!r}): a window has 1 file or more")

    def __str__(self) -> str:
        return f"{self.files} file{'' if self.files == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Time:
    """The files of the latest so many microseconds: from just after (t - length) up to t."""

    length: int
    text: str = ""

    def __str__(self) -> str:
        return self.text or f"{self.length / 1e6:g} s"


Window: TypeAlias = Length | Time


def length(files: int) -> Length:
    """A window of the latest `files` files."""
    return Length(files)


def time(duration: str) -> Time:
    """A window of the files of the latest `10 min`, `1 hour 30 minutes`, `45 s`.

    >>> time("10 min")
    Time(length=600000000, text='10 min')
    """
    spelt = re.sub(
        r"(?<=\d)\s*([a-z]+)\b", lambda m: f" {_SHORT.get(m[1], m[1])}", duration.strip().lower()
    )
    found = microseconds(spelt)
    if not found:
        raise FlowError(f"{duration!r} is not a length of time; write for instance '10 min'")
    return Time(found, duration.strip())


def window_of(given: Window | str | int) -> Window:
    """A window as given: one made by `length` or `time`, a number of files, or a text of either.

    >>> window_of("3"), window_of("1 hour").length
    (Length(files=3), 3600000000)
    """
    match given:
        case Length() | Time():
            return given
        case int() if not isinstance(given, bool):
            return Length(given)
        case str() if re.fullmatch(r"\s*\d+\s*", given):
            return Length(int(given))
        case str():
            return time(given)
    raise FlowError(f"window={given!r} is no window: give length(3), or time('10 min')")


@dataclass(frozen=True, slots=True)
class Member:
    """A map output in a window: the number of its file, and the file's time in microseconds."""

    file: int
    time: int


@dataclass(frozen=True, slots=True)
class Change:
    """A window after a change: when it was, and who is in it now, oldest first."""

    at: int
    members: tuple[Member, ...]
    added: int | None = None


def arrival(modified: int, clock: int | None, now: int) -> int:
    """The time of a file that is taken now: when it was modified, in the order of what happened.

    A file that comes with an older time than the window's last change comes at that change, and
    none comes later than now, whatever its clock says. All in microseconds.

    >>> arrival(50, 40, 60), arrival(30, 40, 60), arrival(90, 40, 60)
    (50, 40, 60)
    """
    then = min(modified, now)
    return then if clock is None else max(then, clock)


def changes(
    window: Window, members: Iterable[Member], arrivals: Iterable[Member], now: int | None = None
) -> Iterator[Change]:
    """How a window changes as files come in order, and then, with `now`, as time passes."""
    current = tuple(members)
    for member in arrivals:
        for change in _expiries(window, current, member.time):
            current = change.members
            yield change
        current = (*_staying(window, current, member.time), member)
        if isinstance(window, Length):
            current = current[-window.files :]
        yield Change(member.time, current, member.file)
    if now is not None:
        yield from _expiries(window, current, now + 1)


def next_expiry(window: Window, members: Iterable[Member]) -> int | None:
    """When the next file leaves by the passing of time; None if none does."""
    if isinstance(window, Length):
        return None
    return min((member.time + window.length for member in members), default=None)


def _expiries(window: Window, members: tuple[Member, ...], before: int) -> Iterator[Change]:
    """The changes by time alone, before a moment: at that moment, they are part of what comes."""
    while (at := next_expiry(window, members)) is not None and at < before:
        members = _staying(window, members, at)
        yield Change(at, members)


def _staying(window: Window, members: tuple[Member, ...], at: int) -> tuple[Member, ...]:
    if isinstance(window, Length):
        return members
    return tuple(member for member in members if at < member.time + window.length)
