"""One queue with several slots (M/M/c): Streamflow's Equations 2 to 5, safe for many slots."""

from __future__ import annotations

import math
from dataclasses import dataclass

from headwater.errors import FlowError


def utilisation(rate: float, service: float, slots: int) -> float:
    """Equation 2: the share of time that a slot is busy; at 1 and above the queue grows.

    >>> utilisation(rate=5, service=0.2, slots=4)
    0.25
    """
    return rate * service / slots


def all_busy_of_lost(load: float, slots: int) -> float:
    """Erlang B, which is 1 − K of Equation 3: by recurrence, as the sums overflow with slots.

    `load` is the rate times the service time: the slots that are busy on average.
    """
    blocked = 1.0
    for slot in range(1, slots + 1):
        blocked = load * blocked / (slot + load * blocked)
    return blocked


def poisson_ratio(load: float, slots: int) -> float:
    """Equation 3: K, how many of the states with a free slot there are among all up to full.

    >>> round(poisson_ratio(load=2, slots=3), 6)  # (1 + 2 + 2) / (1 + 2 + 2 + 8/6)
    0.789474
    """
    return 1.0 - all_busy_of_lost(load, slots)


def erlang_c(load: float, slots: int) -> float:
    """Equation 4: the probability that all slots are busy, so that an event has to wait.

    >>> erlang_c(load=0.5, slots=1), erlang_c(load=3, slots=2)
    (0.5, 1.0)
    """
    busy = load / slots
    if busy >= 1:
        return 1.0
    lost = all_busy_of_lost(load, slots)
    # (1 − K) / (1 − ρK) with K = 1 − lost, without the difference of two numbers near 1.
    return lost / (1 - busy + busy * lost)


@dataclass(frozen=True, slots=True)
class Steady:
    """What a queue settles to, if it does."""

    rate: float
    service: float
    slots: int

    def __post_init__(self) -> None:
        if not (self.rate >= 0 and self.service >= 0 and self.slots >= 1):
            raise FlowError(
                f"rate={self.rate}, service={self.service}, slots={self.slots}: give a rate and a "
                "service time of 0 or more, and 1 slot or more"
            )

    @property
    def load(self) -> float:
        """Slots that are busy on average."""
        return self.rate * self.service

    @property
    def utilisation(self) -> float:
        """Equation 2."""
        return utilisation(self.rate, self.service, self.slots)

    @property
    def sustainable(self) -> bool:
        """Whether it settles at all."""
        return self.utilisation < 1

    @property
    def waiting(self) -> float:
        """Equation 5: events that wait for a slot, on average.

        >>> Steady(rate=1, service=0.5, slots=1).waiting
        0.5
        """
        if not self.sustainable:
            return math.inf
        busy = self.utilisation
        return erlang_c(self.load, self.slots) * busy / (1 - busy)

    @property
    def in_transit(self) -> float:
        """Events in the node, on average: those that wait and those in a slot."""
        return self.waiting + self.load

    @property
    def time(self) -> float:
        """Seconds that an event is in the node, by Little's law: L = λW."""
        return self.service if not self.rate else self.in_transit / self.rate

    def limit(self, chance: float = 1e-4) -> float:
        """A length that is exceeded with no more than about this chance, while it is steady.

        >>> Steady(rate=1, service=0.5, slots=1).limit()
        14
        """
        if not self.sustainable:
            return math.inf
        # Busy slots are Poisson until all of them are; beyond, each further one waiting is less
        # likely than the one before by the factor of the utilisation.
        in_slots = min(self.slots, self.load + 3.1 * math.sqrt(self.load) + 1)
        waits = erlang_c(self.load, self.slots)
        tail = math.log(chance / waits) / math.log(self.utilisation) if waits > chance else 0
        return math.ceil(in_slots + tail)
