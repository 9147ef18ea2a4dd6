"""What a host has written down of its deployments, as other processes read it, without Spark."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.errors import RunError

if TYPE_CHECKING:
    from pathlib import Path

STATUS, HISTORY = "status.json", "history.json"
"""In a deployment's folder."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A deployment as it was measured last."""

    status: dict[str, Any]
    history: dict[str, Any]

    @property
    def flow(self) -> str:
        """Its name."""
        return str(self.status["flow"])

    @property
    def age(self) -> float:
        """Seconds since it was measured."""
        return max(0.0, time.time() - float(self.status["at"]))

    def lengths(self, node: str) -> list[int]:
        """The history of the queue of a unit, by its first node."""
        found: list[int] = self.history.get("nodes", {}).get(node, [])
        return found


def deployed(folder: Path) -> list[str]:
    """The flows that are deployed in a folder."""
    return sorted(path.parent.name for path in folder.glob("*/deployment.json"))


def look(folder: Path, name: str | None = None) -> list[Seen]:
    """One flow of a folder, or all, those that were not measured yet left out."""
    there = deployed(folder)
    if not there:
        raise RunError(f"no flow is deployed in {folder}; use `headwater flow deploy FILE`")
    if name is not None and name not in there:
        raise RunError(f"no flow {name!r} is deployed in {folder}; there is {', '.join(there)}")
    found = []
    for each in there if name is None else [name]:
        status = read(folder / each / STATUS)
        if status:
            found.append(Seen(status, read(folder / each / HISTORY)))
    return found


def read(path: Path) -> dict[str, Any]:
    """What is written there; nothing, where nothing is, or only half of it."""
    try:
        told: dict[str, Any] = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return told
