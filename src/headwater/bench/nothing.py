"""A job that does nothing, in a module that imports nothing: what is measured is the runtime."""

from __future__ import annotations

from typing import Any


def job(event: dict[str, Any]) -> dict[str, Any]:
    """The event's number, twice."""
    return {"n": event["n"], "at": event["at"], "twice": event["n"] * 2}
