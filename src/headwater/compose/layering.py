"""A connected graph in layers: which layer, which order in it, which row."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

_SWEEPS = 6
_MOVES = 8
_MOST = 20_000
"""So many places of long edges at most: beyond that they may run over boxes."""

Pair = tuple[str, str]
Spot = str | tuple[str, str, int]
"""A node, or the place of a long edge in a layer."""


@dataclass(slots=True)
class Layers:
    """Places in cells: columns are whole, rows are whole or halves."""

    places: dict[str, tuple[int, float]] = field(default_factory=dict)
    bends: dict[Pair, list[tuple[int, float]]] = field(default_factory=dict)
    width: int = 0
    height: float = 0


def arranged(names: list[str], pairs: list[Pair]) -> Layers:
    """The nodes of a connected graph, its edges pointing right unless they close a cycle.

    >>> arranged(["a", "b", "c"], [("a", "b"), ("a", "c")]).places
    {'a': (0, 0.5), 'b': (1, 0.0), 'c': (1, 1.0)}
    """
    forward = _acyclic(names, pairs)
    column = _columns(names, forward)
    # Edges over several layers get a place in each of those between.
    spots: dict[Spot, int] = {name: column[name] for name in names}
    links: list[tuple[Spot, Spot]] = []
    room = _MOST
    for one, other in forward:
        last: Spot = one
        between = range(column[one] + 1, column[other])
        if len(between) <= room:
            room -= len(between)
            for at in between:
                spot = (one, other, at)
                spots[spot] = at
                links.append((last, spot))
                last = spot
            links.append((last, other))
    layers: list[list[Spot]] = [[] for _ in range(max(column.values(), default=-1) + 1)]
    for each, at in spots.items():
        layers[at].append(each)
    before: dict[Spot, list[Spot]] = {each: [] for each in spots}
    after: dict[Spot, list[Spot]] = {each: [] for each in spots}
    for left, right in links:
        after[left].append(right)
        before[right].append(left)
    rows = _rows(_ordered(layers, before, after), before, after)
    drawn = Layers(width=len(layers))
    for each, at in spots.items():
        if isinstance(each, str):
            drawn.places[each] = (at, rows[each])
        else:
            drawn.bends.setdefault(each[:2], []).append((at, rows[each]))
    # A long edge may lie below the last box.
    drawn.height = max(rows.values(), default=-1) + 1
    return drawn


def _acyclic(names: list[str], pairs: list[Pair]) -> list[Pair]:
    """The edges without those that lead back into a path that they come from."""
    out: dict[str, list[str]] = {name: [] for name in names}
    for one, other in pairs:
        out[one].append(other)
    done: set[str] = set()
    back: set[Pair] = set()
    for name in names:
        path: dict[str, int] = {} if name in done else {name: 0}
        while path:
            at, place = next(reversed(path.items()))
            if place == len(out[at]):
                done.add(at)
                path.popitem()
                continue
            path[at] = place + 1
            other = out[at][place]
            if other in path:
                back.add((at, other))
            elif other not in done:
                path[other] = 0
    return [pair for pair in pairs if pair not in back]


def _columns(names: list[str], pairs: list[Pair]) -> dict[str, int]:
    """The longest path to each node; what reads nothing stands right before its first reader."""
    out: dict[str, list[str]] = {name: [] for name in names}
    waiting = dict.fromkeys(names, 0)
    for one, other in pairs:
        out[one].append(other)
        waiting[other] += 1
    starts = [name for name in names if not waiting[name]]
    column = dict.fromkeys(names, 0)
    ready = deque(starts)
    while ready:
        name = ready.popleft()
        for other in out[name]:
            column[other] = max(column[other], column[name] + 1)
            waiting[other] -= 1
            if not waiting[other]:
                ready.append(other)
    for name in starts:
        column[name] = min((column[other] for other in out[name]), default=1) - 1
    return column


_Near = dict[Spot, list[Spot]]


def _ordered(layers: list[list[Spot]], before: _Near, after: _Near) -> list[list[Spot]]:
    """The order within each layer, of a few sweeps the one with the fewest crossings.

    Each sweep ends going right, so that what has one neighbour on the left keeps its order: chains
    never cross each other.
    """
    best, fewest = layers, -1
    order = [list(layer) for layer in layers]
    for _ in range(_SWEEPS):
        for layer, near, there in (
            *((at, after, at + 1) for at in range(len(order) - 2, -1, -1)),
            *((at, before, at - 1) for at in range(1, len(order))),
        ):
            order[layer] = _sorted(order[layer], near, order[there])
        crossed = sum(_crossings(order[at], order[at + 1], after) for at in range(len(order) - 1))
        if fewest < 0 or crossed < fewest:
            best, fewest = [list(layer) for layer in order], crossed
        if not crossed:
            break
    return best


def _sorted(layer: list[Spot], near: _Near, beside: list[Spot]) -> list[Spot]:
    """By the mean place of neighbours; what has none stays about where it is."""
    place = {spot: at for at, spot in enumerate(beside)}
    scale = (len(beside) - 1) / max(len(layer) - 1, 1)

    def mean(at: int) -> float:
        found = [place[spot] for spot in near[layer[at]]]
        return sum(found) / len(found) if found else at * scale

    return [layer[at] for at in sorted(range(len(layer)), key=mean)]


def _crossings(left: list[Spot], right: list[Spot], after: _Near) -> int:
    """Pairs of edges that cross, counted with a tree of sums."""
    place = {spot: at for at, spot in enumerate(right)}
    tree = [0] * (len(right) + 1)
    seen = crossed = 0
    for spot in left:
        ends = sorted(place[other] for other in after[spot])
        for end in ends:
            at, least = end + 1, 0
            while at:
                least += tree[at]
                at &= at - 1
            crossed += seen - least
        for end in ends:
            at = end + 1
            while at < len(tree):
                tree[at] += 1
                at += at & -at
            seen += 1
    return crossed


def _rows(layers: list[list[Spot]], before: _Near, after: _Near) -> dict[Spot, float]:
    """A row for each chain: packed upwards, then moved to the middle of what it is linked with."""
    chain: dict[Spot, int] = {}
    members: list[list[Spot]] = []
    for layer in layers:
        for spot in layer:
            near = before[spot]
            if len(near) == 1 and len(after[near[0]]) == 1:
                chain[spot] = chain[near[0]]
                members[chain[spot]].append(spot)
            else:
                chain[spot] = len(members)
                members.append([spot])
    above: list[dict[int, float]] = [{} for _ in members]
    below: list[dict[int, float]] = [{} for _ in members]
    for layer in layers:
        for upper, lower in pairwise(layer):
            # Boxes need a row of their own, lines just some space.
            apart = 1.0 if isinstance(upper, str) and isinstance(lower, str) else 0.5
            one, other = chain[upper], chain[lower]
            apart = max(apart, above[other].get(one, 0.0))
            above[other][one] = below[one][other] = apart
    order = _downwards(above, below)
    row = [0.0] * len(members)
    for each in order:
        row[each] = max((row[other] + gap for other, gap in above[each].items()), default=0.0)
    linked = [
        [chain[other] for spot in spots for other in (*before[spot], *after[spot])]
        for spots in members
    ]
    linked = [[other for other in found if other != at] for at, found in enumerate(linked)]
    for turn in range(_MOVES):
        for each in order if turn % 2 else reversed(order):
            if linked[each]:
                row[each] = _moved(each, row, linked[each], above[each], below[each])
    top = min(row, default=0.0)
    return {spot: row[number] - top for spot, number in chain.items()}


def _downwards(above: list[dict[int, float]], below: list[dict[int, float]]) -> list[int]:
    """Chains after all that is above them. There is no cycle, as chains don't cross."""
    waiting = [len(found) for found in above]
    order = [each for each, count in enumerate(waiting) if not count]
    for each in order:
        for other in below[each]:
            waiting[other] -= 1
            if not waiting[other]:
                order.append(other)
    return order


def _moved(
    each: int,
    row: list[float],
    linked: list[int],
    above: dict[int, float],
    below: dict[int, float],
) -> float:
    """The median row of what a chain is linked with, as near to it as its neighbours let it."""
    wanted = sorted(row[other] for other in linked)
    half = len(wanted) // 2
    middle = wanted[half] if len(wanted) % 2 else (wanted[half - 1] + wanted[half]) / 2
    middle = round(middle * 2) / 2
    lowest = max((row[other] + gap for other, gap in above.items()), default=-inf)
    highest = min((row[other] - gap for other, gap in below.items()), default=inf)
    return max(lowest, min(middle, highest))
