"""Deployment: flow files at work, in versions that can be changed while they run."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.deploy.deployment import Deployment
    from headwater.deploy.host import Host

__all__ = ["Deployment", "Host"]

_WHERE = {"Deployment": "headwater.deploy.deployment", "Host": "headwater.deploy.host"}
"""Imported when first asked for: who watches a deployment, or asks for a change, has no Spark."""


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_WHERE[name]), name)
    return value
