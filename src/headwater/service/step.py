"""The step that calls a service for each row of a batch, as Spark's workers run it."""

from __future__ import annotations

import hashlib
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.pandas.types import to_arrow_type

from headwater.service.answers import conformed
from headwater.service.calls import Calls, Final, Outcome, Policy
from headwater.service.posting import post
from headwater.service.sharing import Shared

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql.types import StructType

BATCH = "streaming.sql.batchId"
"""The property in which Spark tells its tasks the number of the micro-batch."""
GRACE = 5.0
"""Seconds beyond the longest time of an event's calls for which a claim holds."""
POLL = 0.02, 0.5
"""Seconds between two looks for answers that other tasks are to give: at first, and at most."""
AT_ONCE = 500
"""As many events are looked for at once."""


@dataclass(frozen=True, slots=True)
class Called:
    """A service and how it is called."""

    target: str | Callable[..., Any]
    response: StructType
    policy: Policy
    step: str
    token: str
    timezone: str
    static: dict[str, Any] = field(default_factory=dict)

    @property
    def type(self) -> pa.StructType:
        """The type of answers."""
        return to_arrow_type(self.response, timezone="UTC", prefers_large_types=False)

    def answer(self, event: Mapping[str, Any]) -> bytes:
        """The answer to an event, checked, as Arrow's bytes; raises why there is none."""
        if isinstance(self.target, str):
            answer = post(self.target, {**event, **self.static}, self.policy.timeout)
        else:
            answer = self.target(dict(event), **self.static)
        return packed(conformed(answer, self.response, self.timezone), self.type)


def service_function(called: Called) -> Callable[[pa.Array, pa.Array], pa.Array]:
    """The service over arrays of requests, as Spark calls it; rows are told apart by identities."""

    def apply(requests: pa.Array, identities: pa.Array) -> pa.Array:
        events = requests.to_pylist()
        keys = [key_of(i, e) for i, e in zip(identities.to_pylist(), events, strict=True)]
        outcomes = answered(called, dict(zip(keys, events, strict=True)), batch_number())
        told = [outcomes[key] for key in keys]
        answers = [None if o.answer is None else unpacked(o.answer, called.type) for o in told]
        return pa.StructArray.from_arrays(
            [
                pa.array(answers, called.type),
                pa.array([o.reason for o in told], pa.string()),
                pa.array([o.attempts for o in told], pa.int32()),
            ],
            ["answer", "reason", "attempts"],
        )

    apply.__annotations__ = {"requests": pa.Array, "identities": pa.Array, "return": pa.Array}
    return apply


def answered(
    called: Called, events: Mapping[bytes, Mapping[str, Any]], batch: int
) -> dict[bytes, Outcome]:
    """What came of some events: called for by this task, or by another that was first."""
    done: dict[bytes, Outcome] = {}
    todo, taken = deque(events), deque[bytes]()
    calls = Calls(called.answer, called.policy)
    progress, wait = True, POLL[0]
    with Shared(called.token, batch, called.step, called.policy.longest + GRACE) as shared:
        while len(done) < len(events):
            if not todo and not calls.under_way:
                # Others have claimed what is left: look again, less often while nothing comes.
                wait = POLL[0] if progress else min(2 * wait, POLL[1])
                time.sleep(0 if progress else wait)
                todo, taken, progress = taken, deque[bytes](), False
            if todo and calls.room:
                some = [todo.popleft() for _ in range(min(AT_ONCE, len(todo)))]
                known, free = shared.look(some)
                room = calls.room
                mine = shared.claim(free[:room])
                for event in mine:
                    calls.start(event, events[event])
                done |= known
                progress = progress or bool(known or mine)
                later = set(free[room:])
                todo.extendleft(reversed(free[room:]))
                taken.extend(e for e in some if e not in known and e not in mine and e not in later)
            if calls.under_way:
                at_most = 0 if todo and calls.room else POLL[1]
                for event, outcome in calls.finished(at_most):
                    done[event] = shared.tell(event, outcome)
                    progress = True
    return done


def key_of(identity: int | None, event: Mapping[str, Any]) -> bytes:
    """What an event is known by among a step's: the row's key, and what is sent."""
    sent = hashlib.blake2b(repr(event).encode(), digest_size=16).digest()
    return (identity or 0).to_bytes(8, "big", signed=True) + sent


def packed(answer: dict[str, Any], kind: pa.StructType) -> bytes:
    """An answer as bytes."""
    try:
        row = pa.RecordBatch.from_struct_array(pa.array([answer], kind))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise Final(f"the answer is not as its schema says: {error}") from error
    return bytes(row.serialize())


def unpacked(answer: bytes, kind: pa.StructType) -> dict[str, Any]:
    """An answer from its bytes."""
    row = pa.ipc.read_record_batch(pa.py_buffer(answer), pa.schema(list(kind)))
    found: dict[str, Any] = row.to_pylist()[0]
    return found


def batch_number() -> int:
    """The number of the micro-batch that a task works for; 0 where there are none."""
    context = TaskContext.get()
    number = None if context is None else context.getLocalProperty(BATCH)
    return int(number) if number else 0
