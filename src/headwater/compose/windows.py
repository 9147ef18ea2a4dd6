"""Windows of events: so many, a length of time, a range of values, a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from headwater.compose.durations import microseconds
from headwater.compose.values import Duration, Either, Number, Text, Value, Whole, Wrong, shown
from headwater.compose.violations import nearest


@dataclass(frozen=True, slots=True)
class Window:
    """A window of so many events, a length of time, a range of values, or a session.

    Without `slide` windows follow one another (a batch); with it they overlap.
    """

    count: int | None = None
    time: str | None = None
    value: float | str | None = None
    session: str | None = None
    slide: int | float | str | None = None
    on: str | None = None

    @property
    def measure(self) -> str:
        """What the window is measured in."""
        return next(name for name in _MEASURES if getattr(self, name) is not None)


_MEASURES: dict[str, Value] = {
    "count": Whole(1),
    "time": Duration(),
    "value": Either((Number(), Duration()), "a number, or a length of time"),
    "session": Duration(),
}


@dataclass(frozen=True, slots=True)
class Windows(Value):
    """A window: `{count: 10}`, `{time: 10 minutes, slide: 1 minute}`, `{value: 5, on: x}`."""

    measures: tuple[str, ...] = tuple(_MEASURES)
    batches: bool = False
    """Only windows that follow one another."""
    name: ClassVar[str] = "window"

    def read(self, given: Any) -> Window:
        """Refuse two measures, a slide beyond the size, a range of nothing."""
        if isinstance(given, Window):
            given = _parts(given)
        keys = (*self.measures, *(() if self.batches else ("slide", "on")))
        if not isinstance(given, Mapping):
            raise Wrong(f"is a window such as {{{self.measures[0]}: 10}}, not {shown(given)}")
        for key in given:
            if key not in keys:
                raise Wrong(f"of a window has no key {key!r}{nearest(key, keys)}")
        there = [name for name in self.measures if given.get(name) is not None]
        if len(there) != 1:
            raise Wrong(f"of a window needs one of {', '.join(self.measures)}, not {len(there)}")
        measure = there[0]
        parts: dict[str, Any] = {}
        for key in (measure, "slide"):
            if given.get(key) is not None:
                try:
                    parts[key] = _MEASURES[measure].read(given[key])
                except Wrong as error:
                    raise Wrong(f"of a window: {key} {error}") from error
        if given.get("on") is not None:
            parts["on"] = Text("a column").read(given["on"])
        self._agree(measure, parts)
        return Window(**parts)

    def _agree(self, measure: str, parts: dict[str, Any]) -> None:
        if measure == "session" and "slide" in parts:
            raise Wrong("of a window: a session has a gap and no slide")
        if measure == "value" and ("on" not in parts or "slide" not in parts):
            raise Wrong("of a window: a range of values needs slide, and on, the column of values")
        if measure == "count" and "on" in parts:
            raise Wrong("of a window: on is for values and times; a count has no column")
        sizes = {isinstance(parts[key], str) for key in (measure, "slide") if key in parts}
        if len(sizes) > 1:
            raise Wrong("of a window: its size and slide are both numbers or both times")
        if "slide" in parts and _length(parts["slide"]) > _length(parts[measure]):
            raise Wrong("of a window: slide is greater than the size, so events would be in none")

    def write(self, value: Window) -> Any:
        """Its parts."""
        return _parts(value)

    def schema(self) -> dict[str, Any]:
        """One object for each measure."""
        one_of = []
        for measure in self.measures:
            size = _MEASURES[measure].schema()
            parts = {measure: size}
            if not self.batches and measure != "session":
                parts["slide"] = size
            if not self.batches and measure != "count":
                parts["on"] = {"type": "string"}
            needed = [measure, "slide", "on"] if measure == "value" else [measure]
            one_of.append(
                {
                    "type": "object",
                    "properties": parts,
                    "required": needed,
                    "additionalProperties": False,
                }
            )
        return {"anyOf": one_of}


def _parts(window: Window) -> dict[str, Any]:
    names = (*_MEASURES, "slide", "on")
    return {n: v for n in names if (v := getattr(window, n)) is not None}


def _length(size: Any) -> float:
    return float(microseconds(size) or 0) if isinstance(size, str) else float(size)
