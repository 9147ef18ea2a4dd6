"""The steps of a job: commands and functions that come one after another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from headwater.compose.addresses import Call
from headwater.compose.frozen import Table
from headwater.compose.values import Names, Text, Value, Wrong, shown
from headwater.compose.violations import nearest

DOES: dict[str, Value] = {"run": Text("a command"), "call": Call(), "spark": Call()}
"""What a step does, as a job of one step does it."""
_NAME = r"^[A-Za-z][A-Za-z0-9_]*$"
_KEYS: dict[str, Value] = {**DOES, "after": Names(Text("a step's name", _NAME, "fetch"))}
_TAKEN = "event"
"""What the event itself is called beside the outputs of steps."""


@dataclass(frozen=True, slots=True)
class Steps(Value):
    """Steps by name: `{fetch: {run: ./fetch}, solve: {call: "model:solve", after: fetch}}`."""

    name: ClassVar[str] = "steps"

    def read(self, given: Any) -> Table[Table[Any]]:
        """Refuse steps that do nothing or two things, and that can't be put one after another."""
        if not isinstance(given, Mapping) or not given:
            raise Wrong(f"is names with what they do, {{fetch: {{run: …}}}}, not {shown(given)}")
        read: dict[str, Table[Any]] = {}
        for name, step in given.items():
            if not isinstance(name, str) or not re.fullmatch(_NAME, name) or name == _TAKEN:
                raise Wrong(
                    f"has a step {shown(name)}; its name must be a letter, then letters, digits "
                    f"and _, and not {_TAKEN!r}"
                )
            try:
                read[name] = _read(step)
            except Wrong as error:
                raise Wrong(f"has a step {name!r} {error}") from error
        _in_order(read)
        return Table(read)

    def write(self, value: Any) -> Any:
        """Each key as its own type writes it."""
        return {
            name: {key: _KEYS[key].write(told) for key, told in step.items()}
            for name, step in value.items()
        }

    def schema(self) -> dict[str, Any]:
        """An object for each thing that a step can do."""
        after = _KEYS["after"].schema()
        return {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": _NAME, "not": {"const": _TAKEN}},
            "additionalProperties": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {does: kind.schema(), "after": after},
                        "required": [does],
                        "additionalProperties": False,
                    }
                    for does, kind in DOES.items()
                ]
            },
        }


def _read(given: Any) -> Table[Any]:
    if not isinstance(given, Mapping):
        raise Wrong(f"that must be {{run: …}}, {{call: …}} or {{spark: …}}, not {shown(given)}")
    for key in given:
        if key not in _KEYS:
            raise Wrong(f"that has no key {key!r}{nearest(str(key), _KEYS)}")
    there = [does for does in DOES if given.get(does) is not None]
    if len(there) != 1:
        several = f"not {' and '.join(there)} together" if there else "and has none"
        raise Wrong(f"that needs one of {', '.join(DOES)}, {several}")
    read: dict[str, Any] = {}
    for key in (*there, "after"):
        try:
            if given.get(key) not in (None, [], ()):
                read[key] = _KEYS[key].read(given[key])
        except Wrong as error:
            raise Wrong(f"whose {key} {error}") from error
    return Table(read)


def _in_order(steps: Mapping[str, Table[Any]]) -> None:
    """Each step is written after those that it names; each but the last is named by another."""
    written: set[str] = set()
    for name, step in steps.items():
        for before in step.get("after", ()):
            if before not in written:
                raise Wrong(f"has a step {name!r} that {_too_early(name, before, steps)}")
        written.add(name)
    *others, last = steps
    named = {before for step in steps.values() for before in step.get("after", ())}
    for name in others:
        if name not in named:
            raise Wrong(
                f"has a step {name!r} that none comes after, and the job's output is that of the "
                f"last one, {last!r}; name it there, or take it away"
            )


def _too_early(name: str, before: str, steps: Mapping[str, Table[Any]]) -> str:
    """Why a step can't come after one that is not written above it."""
    if before not in steps:
        return f"comes after {before!r}, which is no step{nearest(before, steps)}"
    ways, seen = [[name, before]], {before}
    while ways:
        way = ways.pop()
        if way[-1] == name:
            return f"waits for itself: {' after '.join(way)}; take one of these away"
        for other in steps[way[-1]].get("after", ()):
            if other in steps and other not in seen:
                seen.add(other)
                ways.append([*way, other])
    return f"comes after {before!r}, which is written below it; write it below that"
