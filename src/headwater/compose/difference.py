"""What changes between two versions of a composition: what a hot change adds, changes, removes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.compose.frozen import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.compose.composition import Composition


@dataclass(frozen=True, slots=True)
class Difference:
    """Nodes of the second that the first lacks, nodes that differ, nodes that are gone."""

    added: tuple[str, ...] = ()
    changed: Mapping[str, tuple[str, ...]] = Table()
    """Each with the keys that differ; `kind` where it is another kind altogether."""
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)

    @property
    def touched(self) -> frozenset[str]:
        """Every node that something happens to."""
        return frozenset([*self.added, *self.changed, *self.removed])

    def __str__(self) -> str:
        lines = [f"+ {name}" for name in self.added]
        lines += [f"~ {name}: {', '.join(keys)}" for name, keys in self.changed.items()]
        lines += [f"- {name}" for name in self.removed]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        changed = {name: list(keys) for name, keys in self.changed.items()}
        return {"added": list(self.added), "changed": changed, "removed": list(self.removed)}


def difference(before: Composition, after: Composition) -> Difference:
    """What leads from one composition to the other."""
    changed: dict[str, tuple[str, ...]] = {}
    for name in after:
        if name not in before or before[name] == after[name]:
            continue
        old, new = before[name], after[name]
        if old.kind != new.kind:
            changed[name] = ("kind",)
            continue
        told, tells = old.written(), new.written()
        # Where the order of columns is all that differs, `written` compares as equal.
        keys = [k for k in {**told, **tells} if _ordered(told.get(k)) != _ordered(tells.get(k))]
        changed[name] = tuple(keys)
    return Difference(
        added=tuple(name for name in after if name not in before),
        changed=Table(changed),
        removed=tuple(name for name in before if name not in after),
    )


def _ordered(value: Any) -> Any:
    return list(value.items()) if isinstance(value, dict) else value
