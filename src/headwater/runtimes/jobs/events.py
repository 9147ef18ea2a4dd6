"""What goes into an execution and what comes out, with names that stay the same."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from headwater.errors import FlowError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.runtimes.jobs.states import State

_LONGEST = 120


@dataclass(frozen=True, slots=True)
class Event:
    """An event that a job is to be done for."""

    id: str | int
    value: Mapping[str, Any]
    entity: str | None = None
    """Its name in provenance, `hw:<flow>/<name>/<id>`."""
    at: float | None = None
    """Its time in seconds since 1970; windows of time need it."""


@dataclass(frozen=True, slots=True)
class Output:
    """An event that an execution made."""

    id: int
    value: Mapping[str, Any]
    entity: str


@dataclass(frozen=True, slots=True)
class Execution:
    """A job done, or to be done, for one event or one window of them."""

    key: str
    """Of its events and the node's version: the same whenever they are enqueued again."""
    flow: str
    node: str
    version: str
    generation: int
    """How often it was rerun."""
    state: State
    events: tuple[Event, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """What a rerun gave beside or instead of the job's static values."""
    attempts: int = 0
    reason: str | None = None
    """Why it failed."""
    stderr: str | None = None
    """The end of what it said."""

    @property
    def name(self) -> str:
        """The key of what it publishes: a rerun is another one."""
        return self.key if not self.generation else f"{self.key}.r{self.generation}"


def key_of(node: str, version: str, ids: Sequence[str | int]) -> str:
    """The key of an execution; readable where that is short.

    >>> [key_of("forecast", "2", ids) for ids in (["scan-7"], ["7"], [7])]
    ['forecast@2/scan-7', 'forecast@2/7', 'forecast@2/#7']
    """
    only = ids[0] if len(ids) == 1 else None
    if isinstance(only, int):
        return f"{node}@{version}/#{only}"
    if isinstance(only, str) and not only.startswith("#") and len(only) <= _LONGEST:
        return f"{node}@{version}/{only}"
    told = json.dumps([node, version, list(ids)], ensure_ascii=False).encode()
    return f"{node}@{version}/#{hashlib.blake2b(told, digest_size=12).hexdigest()}"


def output_id(flow: str, node: str, version: str, name: str, ordinal: int) -> int:
    """The id of an output: a bigint, the same when the execution is done again after a crash."""
    told = json.dumps([flow, node, version, name, ordinal], ensure_ascii=False).encode()
    return int.from_bytes(hashlib.blake2b(told, digest_size=8).digest(), "big", signed=True)


def entity(flow: str, name: str, id: str | int) -> str:
    """The name in provenance of an event of a stream or node."""
    return f"hw:{flow}/{name}/{id}"


def encoded(value: Any) -> str:
    """JSON; times as ISO 8601, what else JSON lacks as text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if hasattr(value, "tolist"):  # numpy's
        return value.tolist()
    if hasattr(value, "asDict"):  # Spark's rows
        return value.asDict(recursive=True)
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    raise FlowError(f"a value of type {type(value).__name__} can't be written as JSON")


def stored(events: Sequence[Event]) -> str:
    """Events as the queue keeps them."""
    return encoded([[each.id, each.value, each.entity, each.at] for each in events])


def restored(text: str) -> tuple[Event, ...]:
    """Events as they were."""
    return tuple(Event(*each) for each in json.loads(text))
