"""The states of a step and the ways between them (Streamflow's Figure 7)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection


class State(StrEnum):
    """Where a step is, or an execution, which is the whole of its steps."""

    waiting = "waiting"
    """For the steps before it."""
    ready = "ready"
    """For a slot."""
    running = "running"
    finished = "finished"
    failed = "failed"
    """Given up: nothing happens until it is rerun."""
    retry = "retry"
    """Failed, and to be tried again when its delay is over."""


TRANSITIONS: tuple[tuple[State, State], ...] = (
    (State.waiting, State.ready),
    (State.ready, State.running),
    (State.running, State.finished),
    (State.running, State.failed),
    (State.running, State.retry),
    (State.retry, State.ready),
    # A rerun, which the user asks for: never out of running.
    (State.finished, State.waiting),
    (State.failed, State.waiting),
    (State.retry, State.waiting),
    (State.ready, State.waiting),
)

OVER = (State.finished, State.failed)


def whole(steps: Collection[State]) -> State:
    """The state of an execution by those of its steps.

    >>> whole([State.finished, State.ready]), whole([State.failed, State.waiting])
    (<State.running: 'running'>, <State.failed: 'failed'>)
    """
    there = set(steps)
    if there == {State.finished}:
        return State.finished
    if State.running in there:
        return State.running
    if State.failed in there and not there & {State.ready, State.retry}:
        return State.failed
    if State.retry in there:
        return State.retry
    if State.finished in there or State.failed in there:
        return State.running
    return State.ready if State.ready in there else State.waiting
