"""A random flow while it is being written: a program of Python lines, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Draft:
    """A frame of the program: its variable, its columns with their types, what Spark knows of it.

    `marks` are the columns that carry a watermark; `steps` counts stateful steps so far. `placed`
    says whether its rows stand in an order of arrival, no two at the same place; `in_order` that
    no step may order them otherwise, since another frame's rows will come between them.
    """

    var: str
    columns: dict[str, str]
    marks: tuple[str, ...]
    steps: int = 0
    sources: frozenset[str] = frozenset()
    placed: bool = True
    in_order: bool = False

    def of(self, *types: str) -> list[str]:
        """The columns of some types."""
        return [name for name, kind in self.columns.items() if kind in types]

    def numbers(self) -> list[str]:
        """Integer columns with small values: not the ids."""
        return [name for name in self.of("int", "bigint") if not name.endswith("id")]

    @property
    def time(self) -> str | None:
        """The event-time column, where there is exactly one and it is a plain timestamp."""
        if len(self.marks) == 1 and self.columns[self.marks[0]] == "timestamp":
            return self.marks[0]
        return None


@dataclass(slots=True)
class Program:
    """The lines of a flow in PySpark's own words, for `exec` and for people."""

    lines: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    frames: int = 0
    apart: bool = False
    """Whether records of different sources always stand at different places."""

    def frame(self, draft: Draft, code: str, feature: str, **changes: object) -> Draft:
        """A new frame made by some code; `feature` is what a test wants to have seen."""
        self.frames += 1
        var = f"f{self.frames}"
        self.lines.append(f"{var} = {code}")
        self.used.add(feature)
        return replace(draft, var=var, **changes)  # type: ignore[arg-type]

    def text(self) -> str:
        """The program."""
        return "\n".join(self.lines)
