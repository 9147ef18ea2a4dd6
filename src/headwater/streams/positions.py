"""Positions: how far into a stream something is."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.streams.errors import StreamError


@dataclass(frozen=True, slots=True)
class Position:
    """The number of events before a place in a stream, for each part of its log.

    A log of Parquet files has one part; a Kafka topic has one for each partition. As text it can be
    kept anywhere.

    >>> Position.of("12"), str(Position.of(12)), Position.of([3, 0]) <= Position.of("3,5")
    (Position(offsets=(12,)), '12', True)
    """

    offsets: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.offsets or min(self.offsets) < 0:
            raise StreamError(f"{self.offsets} is not a position: give numbers of 0 or more")

    @classmethod
    def of(cls, given: Position | int | str | list[int] | tuple[int, ...]) -> Position:
        """A position from what says one: itself, a number, or the text of one."""
        match given:
            case Position():
                return given
            case int():
                return cls((given,))
            case str():
                try:
                    return cls(tuple(int(part) for part in given.split(",")))
                except ValueError:
                    raise StreamError(
                        f"{given!r} is not a position; write a number such as 120"
                    ) from None
            case _:
                return cls(tuple(given))

    def until(self, later: Position) -> int:
        """How many events lie between here and a later position.

        >>> Position.of(3).until(Position.of(10))
        7
        """
        self._comparable(later)
        return sum(b - a for a, b in zip(self.offsets, later.offsets, strict=True))

    def __le__(self, other: Position) -> bool:
        self._comparable(other)
        return all(a <= b for a, b in zip(self.offsets, other.offsets, strict=True))

    def __lt__(self, other: Position) -> bool:
        return self <= other and self != other

    def __int__(self) -> int:
        if len(self.offsets) != 1:
            raise StreamError(f"position {self} is of a log of {len(self.offsets)} parts, not one")
        return self.offsets[0]

    def __str__(self) -> str:
        return ",".join(map(str, self.offsets))

    def _comparable(self, other: Position) -> None:
        if len(self.offsets) != len(other.offsets):
            raise StreamError(f"positions {self} and {other} are of different logs")
