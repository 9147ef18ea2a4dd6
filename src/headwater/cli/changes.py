"""What a change of a deployed flow did, as the commands print it."""

from __future__ import annotations

import json as encoder
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.cli.output import console, print_json
from headwater.errors import RunError

if TYPE_CHECKING:
    from headwater.deploy.records import DeploymentFiles

EFFECT = 4.0
"""Seconds after which the effect of a change is shown."""


def files_of(flows: Path, name: str) -> DeploymentFiles:
    """What is kept of a deployed flow."""
    from headwater.deploy.monitoring.seen import deployed
    from headwater.deploy.records import DeploymentFiles

    files = DeploymentFiles(flows / name)
    if not files.exists:
        there = ", ".join(deployed(flows)) or "none"
        raise RunError(f"no flow {name!r} is deployed in {flows}; there is {there}")
    return files


def print_effect(
    flows: Path, name: str, started: list[str], rates: bool | None, json: bool
) -> None:
    """The rates at the nodes that a change has brought, a moment after it."""
    from headwater.cli.watch import effect

    if started and not json and (console().is_terminal if rates is None else rates):
        effect(name, flows, started, EFFECT)


def print_change(flows: Path, name: str, version: int, took: float, json: bool) -> list[str]:
    """What a change did; the units that it started."""
    files = files_of(flows, name)
    change = files.change(version)
    before = [v for v in files.versions() if v < version]
    earlier = files.change(before[-1]).units if before else []
    started = [unit for unit in change.units if unit not in earlier]
    units = {
        "kept": [unit for unit in change.units if unit in earlier],
        "ended": [unit for unit in earlier if unit not in change.units],
        "started": started,
    }
    if json:
        told = {
            "flow": name,
            "version": version,
            "action": change.action,
            "difference": change.difference,
            **units,
            "seconds": round(took, 3),
        }
        print_json([encoder.dumps(told), "\n"])
        return started
    out = console()
    out.print(f"flow {name}: version {version} in {took:.1f} s", markup=False)
    if text := changes(change.difference):
        out.print(f"  changed: {text}", markup=False)
    for what, which in units.items():
        if which:
            out.print(f"  {what}: {', '.join(which)}", markup=False)
    return started


def changes(difference: dict[str, Any]) -> str:
    """A difference of two versions in a line."""
    parts = [f"+ {name}" for name in difference.get("added", ())]
    parts += [f"~ {name}: {', '.join(k)}" for name, k in difference.get("changed", {}).items()]
    parts += [f"- {name}" for name in difference.get("removed", ())]
    return "; ".join(parts)
