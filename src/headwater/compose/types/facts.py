"""What is known of a stream: its columns and properties, each with a verdict and the reason."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from headwater.compose.violations import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.compose.types.paths import Path
    from headwater.compose.types.schemas import Type

Verdict = Literal["valid", "invalid", "unknown"]
Rule = Literal["schema", "validated", "derivation", "substructure", "merge", "last event", "none"]
"""The inference rules of Streamflow's §5.6, the example of the last event, or no rule at all."""


_HIDDEN = "_metadata"
"""What Spark knows of a file's rows without a schema saying so."""


@dataclass(frozen=True, slots=True)
class Fact:
    """Whether a name means something in a stream's events, and why."""

    verdict: Verdict
    rule: Rule
    reason: str
    type: Type | None = None
    path: Path | None = None
    """Where a property is; a column has none."""

    def by(self, rule: Rule) -> Fact:
        """The same, known by another rule; what is not valid stays as it is."""
        return replace(self, rule=rule) if self.verdict == "valid" else self


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the events of a stream."""

    facts: dict[str, Fact] = field(default_factory=dict)
    complete: bool = False
    """Whether there can be no other columns."""
    paths: tuple[Path, ...] = ()
    """Paths that are valid, whatever they are called."""
    name: str = ""
    merges: bool = False

    def look(self, name: str) -> Fact:
        """Whether a column or property of this name can be used."""
        found = self.get(name)
        if found is not None:
            return found
        if self.complete and name != _HIDDEN:
            near = nearest(name, [n for n, f in self.facts.items() if f.verdict != "invalid"])
            return Fact("invalid", "schema", f"{self.name!r} has no column {name!r}{near}")
        return Fact("unknown", "none", f"nothing says what the events of {self.name!r} hold")

    def get(self, name: str) -> Fact | None:
        """The fact about a name, in whatever case, as Spark has it."""
        if name in self.facts:
            return self.facts[name]
        folded = name.casefold()
        return next((f for n, f in self.facts.items() if n.casefold() == folded), None)

    def holds(self, path: Path) -> Literal["validated", "substructure", "merge"] | None:
        """Whether a path is among the valid ones, or on the way to one."""
        found = [other for other in self.paths if path.within(other)]
        if not found:
            return None
        if self.merges:
            return "merge"
        return "validated" if any(path.steps == p.steps for p in found) else "substructure"


def merged(inputs: list[Known], name: str) -> Known:
    """What holds for the events of every one of several streams."""
    first, *others = inputs
    facts: dict[str, Fact] = {}
    for column, fact in first.facts.items():
        told = [fact, *(found for other in others if (found := other.get(column)) is not None)]
        if len(told) < len(inputs):
            continue
        worst = max(told, key=lambda f: ("valid", "unknown", "invalid").index(f.verdict))
        reason = f"all inputs of {name!r} have it"
        whole = worst.verdict == "valid"
        facts[column] = replace(fact, rule="merge", reason=reason) if whole else worst
    paths = tuple(
        prefix
        for path in first.paths
        for prefix in _prefixes(path)
        if all(other.holds(prefix) for other in others)
    )
    return Known(facts, all(each.complete for each in inputs), paths, name, merges=True)


def _prefixes(path: Path) -> Iterator[Path]:
    """A path and those on the way to it."""
    for length in range(len(path.steps or ()), 0, -1):
        yield replace(path, steps=(path.steps or ())[:length])
