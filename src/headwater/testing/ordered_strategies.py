"""Hypothesis strategies for random flows with steps over arrival order, among native ones."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from headwater.testing import join_steps, ordered_join_steps, parts, stateful_steps
from headwater.testing.drafts import Draft, Program
from headwater.testing.ordered_steps import ORDERED, b_sort, count_window, sortable, value_window
from headwater.testing.records import source_data
from headwater.testing.strategies import RandomProgram, written

ORDERED_THEMES = (
    "count window",
    "value window",
    "b-sort",
    "merge",
    "join latest",
    "join last",
    "join value",
    "chain",
    "aggregate before",
    "aggregate behind",
    "deduplication before",
    "join before",
)
"""What each flow must have, in turn: every one has a step over arrival order."""


@st.composite
def ordered_programs(
    draw: st.DrawFn, themes: tuple[str, ...], batches: tuple[int, int] = (3, 7)
) -> RandomProgram:
    """A program with one flow, and so one sink, for each of the themes above.

    In half of them records of different sources stand at different places, in the others the
    rows of all sources' files stand at the same.
    """
    names = ["a", "b", "c"][: draw(st.integers(2, 3))]
    apart = draw(st.booleans())
    shifts = draw(st.permutations([0, 300, 600])) if apart else [0, 0, 0]
    data = tuple(
        replace(draw(source_data(name, 1000 * (i + 1), batches, rows_each=(6, 18))), shift=shift)
        for i, (name, shift) in enumerate(zip(names, shifts, strict=False))
    )
    return written(draw, Program(apart=apart), data, themes, _flow)


def _flow(draw: st.DrawFn, program: Program, names: list[str], theme: str) -> Draft:
    draft = _theme(draw, program, names, theme)
    for _ in range(draw(st.integers(0, 2))):
        draft = parts.stateless(draw, program, draft, 1)
        if draft.steps < parts.MOST_STATEFUL and draw(st.integers(0, 2)) == 2:
            more = draw(st.sampled_from([parts.native, ordered]))
            draft = more(draw, program, draft)
    return draft


def ordered(draw: st.DrawFn, program: Program, draft: Draft) -> Draft:
    """A step over arrival order; rows that nothing can order are left as they are."""
    if not draft.placed and not sortable(draft):
        return draft
    return parts.first(draw, program, draft, draw(st.sampled_from(ORDERED)), count_window)


def _theme(draw: st.DrawFn, program: Program, names: list[str], theme: str) -> Draft:
    match theme:
        case "count window":
            draft = parts.stateless(draw, program, parts.source(draw, names))
            return count_window(draw, program, draft)
        case "value window":
            draft = parts.stateless(draw, program, parts.source(draw, names))
            return parts.first(draw, program, draft, value_window, count_window)
        case "b-sort":
            draft = parts.stateless(draw, program, parts.source(draw, names))
            return parts.first(draw, program, draft, b_sort, count_window)
        case "chain":
            draft = ordered(draw, program, parts.source(draw, names))
            draft = parts.stateless(draw, program, draft, 1)
            return ordered(draw, program, draft)
        case "aggregate before":
            draft = parts.stateless(draw, program, parts.source(draw, names), 1)
            before = draw(st.permutations([stateful_steps.window, stateful_steps.session]))
            draft = parts.first(draw, program, draft, *before)
            if draw(st.integers(0, 2)) == 2:
                other = parts.source(draw, names)
                joins = ordered_join_steps.JOINS
                joined = draw(st.sampled_from(joins))(draw, program, draft, other)
                return joined or ordered(draw, program, draft)
            return ordered(draw, program, draft)
        case "aggregate behind":
            draft = ordered(draw, program, parts.source(draw, names))
            return parts.native(draw, program, draft)
        case "deduplication before":
            draft = parts.stateless(draw, program, parts.source(draw, names), 1)
            before = [stateful_steps.deduplicate, stateful_steps.deduplicate_within]
            draft = parts.first(draw, program, draft, *draw(st.permutations(before)))
            return ordered(draw, program, draft)
    return _several(draw, program, names, theme)


def _several(draw: st.DrawFn, program: Program, names: list[str], theme: str) -> Draft:
    left, right = parts.two(draw, program, names)
    match theme:
        case "merge":
            frames = [left, right, *([parts.source(draw, names)] if draw(st.booleans()) else [])]
            frames = [parts.stateless(draw, program, frame, 1) for frame in frames]
            frames = [frame for frame in frames if frame.marks == left.marks]
            if len(frames) < 2:
                frames = [left, right]
            both = ordered_join_steps.merge(draw, program, frames)
            return ordered(draw, program, both)
        case "join before":
            joined = join_steps.streams(draw, program, left, right) or left
            if len(joined.marks) > 1:
                code = f'{joined.var}.drop("{joined.marks[1]}")'
                columns = {n: k for n, k in joined.columns.items() if n != joined.marks[1]}
                joined = program.frame(
                    joined, code, "drop", columns=columns, marks=joined.marks[:1]
                )
            return ordered(draw, program, joined)
    left = _before_join(draw, program, left)
    right = _before_join(draw, program, right)
    match theme:
        case "join latest":
            return ordered_join_steps.join_latest(draw, program, left, right)
        case "join last":
            return ordered_join_steps.join_last(draw, program, left, right)
    joined_by_value = ordered_join_steps.join_value(draw, program, left, right)
    return joined_by_value or ordered_join_steps.join_latest(draw, program, left, right)


def _before_join(draw: st.DrawFn, program: Program, draft: Draft) -> Draft:
    """Sometimes another step over arrival order, such as the sort that a value join wants."""
    draft = replace(parts.stateless(draw, program, draft, 1), in_order=True)
    if draw(st.integers(0, 2)) == 2:
        return parts.first(draw, program, draft, draw(st.sampled_from([b_sort, ordered])))
    return draft
