"""Rows with provenance, and the names by which expressions reach their columns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

MICROSECOND = timedelta(microseconds=1)

_numbers = count()


class InterpreterError(HeadwaterError):
    """A flow, or a part of it, that the reference interpreter does not know."""


@dataclass(frozen=True, slots=True)
class Struct:
    """A value with named fields, such as a window's start and end."""

    fields: tuple[tuple[str, Any], ...]

    def get(self, name: str) -> Any:
        """A field's value."""
        for field_name, value in self.fields:
            if field_name.lower() == name.lower():
                return value
        raise InterpreterError(f"no field {name} in {[n for n, _ in self.fields]}")

    def __lt__(self, other: Struct) -> bool:
        """Field by field, null before any value, as Spark orders structs."""
        for (_, mine), (_, theirs) in zip(self.fields, other.fields, strict=True):
            if mine != theirs:
                return mine is None or (theirs is not None and bool(mine < theirs))
        return False


def window_struct(start: datetime, end: datetime) -> Struct:
    """The value of a window column."""
    return Struct((("start", start), ("end", end)))


def moment(value: Any) -> datetime | None:
    """The time that a window expression means: a timestamp, or the last moment of a window."""
    time: datetime | None = value.get("end") if isinstance(value, Struct) else value
    return time - MICROSECOND if isinstance(value, Struct) and time is not None else time


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an operator's output.

    `mark` is the watermark's delay in milliseconds where the column is the stream's event time:
    Spark keeps it in the column's metadata, and it follows the column through renames; so does
    the fact that a column holds session windows.
    """

    name: str
    qualifier: str | None = None
    mark: int | None = None
    session: bool = False
    hidden: bool = False
    uid: int = field(default_factory=lambda: next(_numbers))

    def renamed(self, name: str) -> Column:
        """The same values under another name: for Spark a new column, with the mark kept."""
        return Column(name, mark=self.mark, session=self.session)


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of an operator's output, in order."""

    columns: tuple[Column, ...]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def visible(self) -> list[int]:
        """The positions that `*` means."""
        return [i for i, c in enumerate(self.columns) if not c.hidden]

    def find(self, parts: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
        """The position that name parts mean, and the fields to take from the value there."""
        if len(parts) > 1:
            found = self._matching(parts[1], parts[0])
            if found:
                return self._one(found, parts), parts[2:]
        found = self._matching(parts[0], None)
        if not found:
            names = ", ".join(f"{c.qualifier}.{c.name}" if c.qualifier else c.name for c in self)
            raise InterpreterError(f"no column {'.'.join(parts)} among {names}")
        return self._one(found, parts), parts[1:]

    def _matching(self, name: str, qualifier: str | None) -> list[int]:
        return [
            i
            for i, column in enumerate(self.columns)
            if column.name.lower() == name.lower()
            and (qualifier is not None or not column.hidden)
            and (qualifier is None or (column.qualifier or "").lower() == qualifier.lower())
        ]

    def _one(self, found: list[int], parts: tuple[str, ...]) -> int:
        if len({self.columns[i].uid for i in found}) > 1:
            raise InterpreterError(f"column {'.'.join(parts)} is ambiguous")
        return found[0]

    def qualified(self, qualifier: str) -> Schema:
        """The same columns under an alias; what was hidden is out of reach then."""
        return Schema(
            tuple(c if c.hidden else replace(c, qualifier=qualifier) for c in self.columns)
        )

    def event_time(self, where: str, among: Collection[int]) -> int | None:
        """The position of the marked column; Spark refuses several in one stream."""
        marked = [i for i in sorted(among) if self.columns[i].mark is not None]
        if len({self.columns[i].uid for i in marked}) > 1:
            names = ", ".join(self.columns[i].name for i in marked)
            raise InterpreterError(f"{where}: more than one event-time column: {names}")
        return marked[0] if marked else None


Ids = frozenset[tuple[str, int]]
"""Provenance: pairs of a source's name and a record's id."""


Place = tuple[Any, ...]
"""Where a row stands in its micro-batch: what steps on the way were ordered by, the source's place
of its record, then a number for each step that made several rows of one or brought branches
together; None is missing."""

NOWHERE: Place = (None,)
"""The place of rows that come in no order: those of native aggregates and joins."""


@dataclass(frozen=True, slots=True)
class Row:
    """Values with the event time and the source records that they came from, at a place."""

    values: tuple[Any, ...]
    time: datetime | None
    ids: Ids
    place: Place = field(default=NOWHERE, compare=False)

    def with_values(self, values: Iterable[Any]) -> Row:
        """Other values from the same records."""
        return replace(self, values=tuple(values))

    def at(self, *place: Any) -> Row:
        """The same row at another place."""
        return replace(self, place=place)


def united(rows: Iterable[Row]) -> Ids:
    """The provenance of rows taken together."""
    return frozenset().union(*(row.ids for row in rows))


def latest(times: Iterable[datetime | None]) -> datetime | None:
    """The latest of the times that are known."""
    return max((t for t in times if t is not None), default=None)
