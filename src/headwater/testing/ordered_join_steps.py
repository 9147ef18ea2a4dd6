"""Random steps over arrival order, of several inputs: merges and the three joins."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from headwater.testing.ordered_steps import NUMBERS, TIMES, ordering

if TYPE_CHECKING:
    from headwater.testing.drafts import Draft, Program


def merge(draw: st.DrawFn, program: Program, frames: list[Draft]) -> Draft:
    """The columns that all frames have, in one stream; some in another order."""
    first = frames[0]
    shared = [
        name
        for name, kind in first.columns.items()
        if all(frame.columns.get(name) == kind for frame in frames)
    ]
    narrow = []
    for frame in frames:
        names = shared if frame is first else draw(st.permutations(shared))
        narrow.append(
            program.frame(
                frame,
                f"{frame.var}.select({list(names)})",
                "select",
                columns={name: frame.columns[name] for name in names},
                marks=tuple(m for m in frame.marks if m in names),
            )
        )
    others = ", ".join(frame.var for frame in narrow[1:])
    return program.frame(
        narrow[0],
        f"{narrow[0].var}.merge({others})",
        f"merge of {min(len(frames), 3)}",
        steps=max(frame.steps for frame in frames),
        sources=frozenset().union(*(frame.sources for frame in frames)),
        placed=all(frame.placed for frame in frames),
    )


def _on(draw: st.DrawFn, left: Draft, right: Draft) -> list[str]:
    options = [n for n in left.of("int", "string") if right.columns.get(n) == left.columns[n]]
    if not options:
        return []
    number = min(draw(st.sampled_from([1, 1, 0, 2])), len(options))
    return draw(st.permutations(options))[:number]


def _renamed(program: Program, left: Draft, right: Draft, on: list[str]) -> Draft:
    """The right side under names that do not clash with the left's."""
    names: dict[str, str] = {}
    for name in right.columns:
        new = name
        while name not in on and new in {name, *left.columns, *names.values()}:
            new = f"r_{new}"
        names[name] = new
    items = ", ".join(f'F.col("{n}").alias("{new}")' for n, new in names.items())
    return program.frame(
        right,
        f"{right.var}.select({items})",
        "select",
        columns={names[n]: kind for n, kind in right.columns.items()},
        marks=tuple(names[m] for m in right.marks),
    )


def _order_by(draw: st.DrawFn, program: Program, left: Draft, right: Draft) -> str:
    """An argument `order_by=`: columns of one type on both sides, all where places are missing."""
    pairs = [
        (a, b)
        for kinds in (("timestamp", "time", "window"), ("int",), ("bigint",), ("string",))
        for a, b in zip(left.of(*kinds), right.of(*kinds), strict=False)
    ]
    if left.placed and right.placed:
        if not pairs or draw(st.integers(0, 2)) < 2:
            return ""
        pairs = [draw(st.sampled_from(pairs))]
    program.used.add("order_by of a join")
    sides = [
        f"[{', '.join(ordering(side, pair[i]) for pair in pairs)}]"
        for i, side in enumerate((left, right))
    ]
    return f'order_by={{"left": {sides[0]}, "right": {sides[1]}}}'


def _joined(
    draw: st.DrawFn,
    program: Program,
    sides: tuple[Draft, Draft],
    on: list[str],
    arguments: str,
    feature: str,
    clock: int = 0,
) -> Draft:
    left, right = sides
    method, _, _ = feature.partition(" ")
    columns = {n: left.columns[n] for n in on} | left.columns | right.columns
    order_by = _order_by(draw, program, left, right)
    given = [right.var, arguments, f"on={on}" if on else "", order_by]
    if left.sources & right.sources:
        program.used.add("ordered self join")
    return program.frame(
        sides[clock],
        f"{left.var}.{method}({', '.join(filter(None, given))})",
        feature,
        columns=columns,
        steps=max(left.steps, right.steps) + 1,
        sources=left.sources | right.sources,
        placed=True,
        in_order=False,
    )


def join_latest(draw: st.DrawFn, program: Program, left: Draft, right: Draft) -> Draft:
    """A clocked join of either clock, outer or not."""
    on = _on(draw, left, right)
    right = _renamed(program, left, right, on)
    clock = draw(st.sampled_from(["left", "right"]))
    outer = clock == "left" and draw(st.booleans())
    arguments = f'clock="{clock}"' if clock == "right" or draw(st.booleans()) else ""
    if outer:
        arguments += (", " if arguments else "") + 'how="left_outer"'
    feature = f"join_latest {'outer' if outer else clock}"
    at = ["left", "right"].index(clock)
    return _joined(draw, program, (left, right), on, arguments, feature, at)


def join_last(draw: st.DrawFn, program: Program, left: Draft, right: Draft) -> Draft:
    """A join with the last rows or those of the last seconds, for each side."""
    on = _on(draw, left, right)
    right = _renamed(program, left, right, on)
    windows = []
    for side in ("left", "right"):
        if draw(st.booleans()):
            windows.append(f"{side}={draw(st.sampled_from([1, 2, 3]))}")
            program.used.add("join_last of rows")
        else:
            windows.append(f'{side}="{draw(st.sampled_from([5, 20, 0, 60]))} seconds"')
            program.used.add("join_last of time")
    return _pairs(draw, program, (left, right), on, ", ".join(windows), "join_last")


def join_value(draw: st.DrawFn, program: Program, left: Draft, right: Draft) -> Draft | None:
    """A join by values of numbers or times."""
    on = _on(draw, left, right)
    right = _renamed(program, left, right, on)
    both = [k for k in (TIMES, NUMBERS) if left.of(*k) and right.of(*k)]
    if not both:
        return None
    kinds = draw(st.sampled_from(both))
    is_time = kinds is TIMES
    a, b = (draw(st.sampled_from(_rising(draw, side.of(*kinds)))) for side in (left, right))
    left_on, right_on = f'"{a}"', f'"{b}"'
    if is_time:
        size = f'"{draw(st.sampled_from([30, 60, 10]))} seconds"'
    else:
        size = f"{draw(st.sampled_from([5, 9, 2.5]))}"
        if a.endswith("id") and b.endswith("id"):
            # The ids of a source are in a range of their own.
            left_on, right_on = f'F.col("{a}") % 1000', f'F.col("{b}") % 1000'
    arguments = f"{left_on}, {right_on}, {size}"
    program.used.add(f"join_value of {'times' if is_time else 'numbers'}")
    return _pairs(draw, program, (left, right), on, arguments, "join_value")


def _rising(draw: st.DrawFn, names: list[str]) -> list[str]:
    """Mostly ids, where there are some: they come in order, as the join takes values to."""
    ids = [name for name in names if name.endswith("id")]
    return ids if ids and draw(st.integers(0, 3)) < 3 else names


def _pairs(
    draw: st.DrawFn,
    program: Program,
    sides: tuple[Draft, Draft],
    on: list[str],
    arguments: str,
    feature: str,
) -> Draft:
    """A join in which rows of both sides make pairs: at one place, if two of them were."""
    left, right = sides
    apart = program.apart and not left.sources & right.sources
    joined = _joined(draw, program, sides, on, arguments, feature)
    return replace(joined, placed=left.placed and right.placed and apart)


JOINS = (join_latest, join_last, join_value)
