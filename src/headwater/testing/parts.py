"""What random flows are put together from: sources, a few steps in a row, two frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from headwater.testing import stateful_steps, steps
from headwater.testing.drafts import Draft, Program

if TYPE_CHECKING:
    from collections.abc import Callable

COLUMNS = {
    "id": "bigint",
    "ts": "timestamp",
    "k": "int",
    "v": "int",
    "s": "string",
    "xs": "array<int>",
}

MOST_STATEFUL = 3
"""Stateful steps on the way to one sink, at most: Spark's time per batch grows with each."""


def source(draw: st.DrawFn, names: list[str]) -> Draft:
    """The frame of a source."""
    name = draw(st.sampled_from(names))
    return Draft(name, dict(COLUMNS), ("ts",), sources=frozenset({name}))


def stateless(draw: st.DrawFn, program: Program, draft: Draft, most: int = 2) -> Draft:
    """A few steps without state, or none."""
    for _ in range(draw(st.integers(0, most))):
        draft = draw(st.sampled_from(steps.STATELESS))(draw, program, draft)
    return draft


def first(
    draw: st.DrawFn, program: Program, draft: Draft, *options: Callable[..., Draft | None]
) -> Draft:
    """The first of the steps that fits the frame."""
    for step in options:
        made = step(draw, program, draft)
        if made is not None:
            return made
    return draft


def two(draw: st.DrawFn, program: Program, names: list[str]) -> tuple[Draft, Draft]:
    """Two frames to bring together, mostly from different sources."""
    left, right = source(draw, names), source(draw, names)
    if left.var == right.var and len(names) > 1 and draw(st.integers(0, 2)) > 0:
        other = next(n for n in names if n != left.var)
        right = Draft(other, dict(COLUMNS), ("ts",), sources=frozenset({other}))
    if draw(st.booleans()):
        left = steps.filter_(draw, program, left)
    right = steps.filter_(draw, program, right)
    return left, right


def native(draw: st.DrawFn, program: Program, draft: Draft) -> Draft:
    """A stateful step of Spark's own that fits, if there is one."""
    if len(draft.marks) == 1 and draft.columns[draft.marks[0]] == "window" and draw(st.booleans()):
        draft = stateful_steps.window_time(draw, program, draft)
    order = draw(st.permutations(list(stateful_steps.STATEFUL)))
    return first(draw, program, draft, *order)


def narrowed(program: Program, draft: Draft) -> Draft:
    """The columns that every frame near a source has."""
    columns = {n: COLUMNS[n] for n in ("id", "ts", "k", "v")}
    code = f'{draft.var}.select("id", "ts", "k", "v")'
    return program.frame(draft, code, "select", columns=columns, marks=("ts",))
