"""Which fault comes when: a pure function of the seed and the length of a soak.

Faults come in rounds. Each round has every kind once, in an order of its own, so that a short soak
has seen as many kinds as it has faults, and a long one every kind in many orders.

>>> [fault.kind for fault in schedule(7, 60.0, ["a", "b"], every=(20.0, 20.0))]
['b', 'a', 'a']
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

KINDS = (
    "kill the service",
    "kill Spark's JVM",
    "kill a publisher",
    "kill in a change",
    "hot change",
    "full disk",
    "clock of the service",
    "clock of a producer",
    "corrupt store",
    "corrupt checkpoint",
    "corrupt stream",
    "hostile events",
    "slow readers",
)
EVERY = (4.0, 14.0)
"""Seconds from one fault's end to the next, at least and at most."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: seconds after the last one was over, its kind, and a seed of its details."""

    after: float
    kind: str
    seed: int


def faults(
    seed: int, kinds: Sequence[str] = KINDS, every: tuple[float, float] = EVERY
) -> Iterator[Fault]:
    """Faults without end."""
    chance = random.Random(seed)
    while True:
        for kind in chance.sample(list(kinds), len(kinds)):
            yield Fault(chance.uniform(*every), kind, chance.getrandbits(32))


def schedule(
    seed: int,
    seconds: float,
    kinds: Sequence[str] = KINDS,
    every: tuple[float, float] = EVERY,
) -> list[Fault]:
    """The faults of a soak, if each took no time."""
    found, at = [], 0.0
    for fault in faults(seed, kinds, every):
        at += fault.after
        if at > seconds:
            return found
        found.append(fault)
    return found
