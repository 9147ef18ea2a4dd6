"""Comparing a run with the interpreter, for some admissible choice of each deduplication.

Which of several rows with one key and one batch survives is Spark's choice. The interpreter
runs with one choice for each such case; the comparison looks for choices under which results
and sets are exactly the store's. Ids in the store's sets only say where to look first: what
is accepted is equality with the interpreter under choices that Spark may make.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

from headwater.flow import nodes
from headwater.testing import Counters, Input, Result, Row, interpret
from tests.random_flows.running import Actual
from tests.random_flows.values import plain, shown

MOST_TRIES = 256

Case = tuple[str, int, tuple[Any, ...]]


class _Choices:
    """The choices of one interpretation: given ones first, then what the store hints at."""

    def __init__(self, given: dict[Case, int], found: frozenset[tuple[str, int]]) -> None:
        self.given = given
        self.found = found
        self.open: dict[Case, list[int]] = {}

    def __call__(self, place: str, batch: int, key: tuple[Any, ...], rows: Sequence[Row]) -> int:
        case = (place, batch, key)
        likely = [i for i, row in enumerate(rows) if row.ids <= self.found]
        if len(likely) != 1:
            # Nothing in the sets tells the candidates apart: all of them are tried.
            self.open[case] = list(range(len(rows)))
            return self.given.get(case, 0)
        return likely[0]


def key_of(values: Any, time: Any, provenance: Iterable[tuple[str, int]]) -> tuple[Any, ...]:
    """What must agree between a result of the store and one of the interpreter."""
    return (plain(values), plain(time), tuple(sorted(provenance)))


def compare(sink: nodes.Sink, given: Input, actual: Sequence[Actual]) -> tuple[str, Counters]:
    """How the store differs from the interpreter (empty: not at all), and what happened."""
    found = frozenset().union(*(a.provenance for a in actual))
    wanted = Counter(key_of(a.values, a.event_time, a.provenance) for a in actual)
    best: tuple[int, str, Counters] | None = None
    tried: set[tuple[tuple[Case, int], ...]] = set()
    queue: list[dict[Case, int]] = [{}]
    while queue and len(tried) < MOST_TRIES:
        choices = _Choices(queue.pop(0), found)
        tried.add(tuple(sorted(choices.given.items(), key=repr)))
        counters = Counters()
        results = interpret(sink, given, choose=choices, counters=counters)
        expected = Counter(key_of(r.values, r.event_time, r.provenance) for r in results)
        if expected == wanted:
            return "", counters
        distance = (expected - wanted).total() + (wanted - expected).total()
        if best is None or distance < best[0]:
            best = (distance, difference(expected, wanted, results), counters)
        queue += _alternatives(choices, tried)
    assert best is not None
    return best[1], best[2]


def _alternatives(
    choices: _Choices, tried: set[tuple[tuple[Case, int], ...]]
) -> list[dict[Case, int]]:
    """All combinations of what is open, when first asked; there are few."""
    if choices.given or not choices.open:
        return []
    cases = list(choices.open)
    combinations = product(*(choices.open[case] for case in cases))
    made = [
        dict(zip(cases, picks, strict=True))
        for picks, _ in zip(combinations, range(MOST_TRIES), strict=False)
    ]
    return [m for m in made if tuple(sorted(m.items(), key=repr)) not in tried]


def difference(expected: Counter[Any], wanted: Counter[Any], results: Sequence[Result]) -> str:
    """What only one of them has, in lines."""
    batch = {key_of(r.values, r.event_time, r.provenance): r.batch for r in results}
    lines = []
    for key, count in sorted((expected - wanted).items(), key=repr):
        lines.append(f"only the interpreter (batch {batch[key]}, {count}x): {_line(key)}")
    lines += [
        f"only the store ({count}x): {_line(key)}"
        for key, count in sorted((wanted - expected).items(), key=repr)
    ]
    return "\n".join(lines)


def _line(key: tuple[Any, ...]) -> str:
    values, time, provenance = key
    ids = ", ".join(f"{source}:{id_}" for source, id_ in provenance)
    return f"{shown(values)} at {shown(time)} from {{{ids}}}"
