"""The six operations of a processing flow (Table I of the paper), as plain descriptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from headwater.errors import FlowError

if TYPE_CHECKING:
    from collections.abc import Callable


def _same(content: Any) -> Any:
    return content


def _always(*contents: Any) -> bool:
    return True


def _pair(left: Any, right: Any) -> Any:
    return (left, right)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Operation:
    """What all operations have: an id, and the stream (or streams, all equal) that they make."""

    id: int
    output: int | tuple[int, ...]

    @property
    def inputs(self) -> tuple[int, ...]:
        """The streams that it reads."""
        raise NotImplementedError

    @property
    def outputs(self) -> tuple[int, ...]:
        """The streams that it makes."""
        return self.output if isinstance(self.output, tuple) else (self.output,)

    def _at_least(self, least: int, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise FlowError(
                    f"operation {self.id}: {name}={value!r} must be an integer of at least {least}"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unary(_Operation):
    """An operation on one stream."""

    input: int

    @property
    def inputs(self) -> tuple[int, ...]:
        """The stream that it reads."""
        return (self.input,)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Join(_Operation):
    """An operation that pairs the events of two streams."""

    left: int
    right: int
    function: Callable[[Any, Any], Any] = _pair
    condition: Callable[[Any, Any], bool] = _always

    @property
    def inputs(self) -> tuple[int, ...]:
        """The left and the right stream."""
        return (self.left, self.right)


@dataclass(frozen=True, slots=True, kw_only=True)
class Map(_Unary):
    """Applies a function to the content of each event."""

    function: Callable[[Any], Any] = _same


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter(_Unary):
    """Passes the events on whose content satisfies a predicate."""

    predicate: Callable[[Any], bool] = _always


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindow(_Unary):
    """At each event, the list of contents of the last `time` milliseconds."""

    time: int

    def __post_init__(self) -> None:
        self._at_least(0, "time")


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthWindow(_Unary):
    """At each event, the list of contents of the last `length` events."""

    length: int

    def __post_init__(self) -> None:
        self._at_least(1, "length")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindowJoin(_Join):
    """At each event, its pairs with the other side's events; a window of time on each side."""

    left_time: int
    right_time: int

    def __post_init__(self) -> None:
        self._at_least(0, "left_time", "right_time")


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthWindowJoin(_Join):
    """At each event, its pairs with the other side's events; a number of events on each side."""

    left_length: int
    right_length: int

    def __post_init__(self) -> None:
        self._at_least(1, "left_length", "right_length")


Operation: TypeAlias = Map | Filter | TimeWindow | LengthWindow | TimeWindowJoin | LengthWindowJoin
