"""The runtime of long jobs: a durable queue, slots, retries, states, reruns."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.runtimes.jobs.events import Event, Execution, Output
    from headwater.runtimes.jobs.job import Job, Step
    from headwater.runtimes.jobs.nodes import job_of
    from headwater.runtimes.jobs.queue import JobQueue
    from headwater.runtimes.jobs.runtime import JobRuntime
    from headwater.runtimes.jobs.states import State

__all__ = [
    "Event",
    "Execution",
    "Job",
    "JobQueue",
    "JobRuntime",
    "Output",
    "State",
    "Step",
    "job_of",
]

_WHERE = {
    "Event": "events",
    "Execution": "events",
    "Job": "job",
    "JobQueue": "queue",
    "JobRuntime": "runtime",
    "Output": "events",
    "State": "states",
    "Step": "job",
    "job_of": "nodes",
}


def __getattr__(name: str) -> Any:
    """Loaded when asked for: each step that is a function starts a process that needs little."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
