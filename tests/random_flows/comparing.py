"""Comparing a run with the interpreter, for some admissible choice of each deduplication.

Which of several rows with one key and one batch survives is Spark's choice. The interpreter
runs with one choice for each such case; the comparison starts from the candidates whose ids
the store's sets have and changes one choice at a time as long as that brings the two closer.
What is accepted is nothing less than equality under choices that Spark may make.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

from headwater.flow import nodes
from headwater.testing import Counters, Input, Row, interpret
from tests.random_flows.running import Actual
from tests.random_flows.values import plain, shown

MOST_TRIES = 500

Case = tuple[str, int, tuple[Any, ...]]


class _Choices:
    """The choices of one interpretation, and what else could have been chosen."""

    def __init__(self, made: dict[Case, int], found: frozenset[tuple[str, int]]) -> None:
        self.made = dict(made)
        self.found = found
        self.options: dict[Case, int] = {}

    def __call__(self, place: str, batch: int, key: tuple[Any, ...], rows: Sequence[Row]) -> int:
        case = (place, batch, key)
        self.options[case] = len(rows)
        if case not in self.made:
            likely = [i for i, row in enumerate(rows) if row.ids <= self.found]
            self.made[case] = likely[0] if likely else 0
        return min(self.made[case], len(rows) - 1)


@dataclass(slots=True)
class Comparison:
    """How the store differs from the interpreter: not at all when `text` is empty."""

    distance: int
    text: str
    counters: Counters
    choices: _Choices


def compare(
    sink: nodes.Sink,
    given: Input,
    actual: Sequence[Actual],
    *,
    traced: bool = True,
    likely: frozenset[tuple[str, int]] = frozenset(),
) -> Comparison:
    """Look for admissible choices that make the interpreter's results the store's.

    Without provenance (`traced=False`) only the values must agree.
    """
    found = likely.union(*(a.provenance for a in actual))
    wanted = Counter(key_of(a.values, a.event_time, a.provenance, traced) for a in actual)

    def attempt(made: dict[Case, int]) -> Comparison:
        choices, counters = _Choices(made, found), Counters()
        results = interpret(sink, given, choose=choices, counters=counters)
        keys = [key_of(r.values, r.event_time, r.provenance, traced) for r in results]
        batches = dict(zip(keys, (r.batch for r in results), strict=True))
        expected = Counter(keys)
        distance = (expected - wanted).total() + (wanted - expected).total()
        return Comparison(distance, difference(expected, wanted, batches), counters, choices)

    best, tries = attempt({}), 1
    improved = True
    while best.distance and improved and tries < MOST_TRIES:
        improved = False
        for case, options in list(best.choices.options.items()):
            for other in range(options):
                if other == best.choices.made[case] or tries >= MOST_TRIES:
                    continue
                trial = attempt({**best.choices.made, case: other})
                tries += 1
                if trial.distance < best.distance:
                    best, improved = trial, True
                    break
            if not best.distance:
                return best
    # One change alone may bring nothing closer, as in a sum: then all combinations, if few.
    cases = best.choices.options
    for picks in islice(product(*map(range, cases.values())), MOST_TRIES if best.distance else 0):
        trial = attempt(dict(zip(cases, picks, strict=True)))
        best = trial if trial.distance < best.distance else best
        if not best.distance:
            break
    return best


def key_of(
    values: Any, time: Any, provenance: Iterable[tuple[str, int]], traced: bool
) -> tuple[Any, ...]:
    """What must agree between a result of the store and one of the interpreter."""
    if not traced:
        return (plain(values), None, ())
    return (plain(values), plain(time), tuple(sorted(provenance)))


def compare_rows(name: str, eager: list[Actual], none: list[Actual]) -> list[str]:
    """Capture must not change results; survivors that are Spark's choice are not compared."""
    with_, without = Counter(a.values for a in eager), Counter(a.values for a in none)
    if with_ == without:
        return []
    lines = [f"{name}: capture changes results"]
    lines += [f"  only eager: {shown(v)}" for v in (with_ - without).elements()]
    lines += [f"  only none: {shown(v)}" for v in (without - with_).elements()]
    return ["\n".join(lines)]


def difference(expected: Counter[Any], wanted: Counter[Any], batch: dict[Any, int]) -> str:
    """What only one of them has, in lines."""
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
