"""Hypothesis strategies for random flows: programs of Headwater's public API, with their data.

A program is Python text over the names `flow`, `F`, `sources` (a function that gives a source's
frame), `zones`, `plain_zones` and the functions of `headwater.testing.functions`. Several flows
share the sources of one program, each with a sink of its own, so that one streaming query
tests them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st

from headwater.testing import join_steps, parts, stateful_steps, steps
from headwater.testing.drafts import Draft, Program
from headwater.testing.records import SourceData, source_data

THEMES = (
    "window",
    "session",
    "join",
    "dedup",
    "chained",
    "static",
    "union",
    "join by time",
    "within",
    "join then aggregate",
    "stateless",
    "aggregate then join",
)
"""What each flow of a program must have, in turn, so that a small sample has everything."""


@dataclass(frozen=True, slots=True)
class RandomProgram:
    """A program with its sources' data; `features` are the kinds of step that it uses."""

    text: str
    sinks: tuple[str, ...]
    data: tuple[SourceData, ...]
    features: frozenset[str]

    def __repr__(self) -> str:
        """The program and its batches, readable when a test fails."""
        parts = [self.text]
        for source in self.data:
            parts.append(f"# {source.name}: watermark {source.delay}")
            parts += [
                f"#   {i}: {[(r[0], f'{r[1]:%M:%S}', *r[2:]) for r in batch]}"
                for i, batch in enumerate(source.batches)
            ]
        return "\n".join(parts)


@st.composite
def programs(
    draw: st.DrawFn, themes: tuple[str, ...], batches: tuple[int, int] = (3, 7)
) -> RandomProgram:
    """A program with one flow, and so one sink, for each theme."""
    names = ["a", "b", "c"][: draw(st.integers(1, 3))]
    needs_two = {"join", "union", "join then aggregate", "join by time", "aggregate then join"}
    if len(names) == 1 and needs_two & set(themes):
        names.append("b")
    data = tuple(draw(source_data(n, 1000 * (i + 1), batches)) for i, n in enumerate(names))
    return written(draw, Program(), data, themes, _flow)


Flow = Callable[[st.DrawFn, Program, list[str], str], Draft]
"""Writes the flow of a theme over some sources, and gives the frame for its sink."""


def written(
    draw: st.DrawFn,
    program: Program,
    data: tuple[SourceData, ...],
    themes: tuple[str, ...],
    flow: Flow,
) -> RandomProgram:
    """The program that has a flow for each theme."""
    for source in data:
        program.lines.append(f'{source.name} = sources("{source.name}")')
        if not source.declared:
            line = f'{source.name} = {source.name}.withWatermark("ts", "{source.delay}")'
            program.lines.append(line)
            program.used.add("withWatermark")
    sinks = []
    for i, theme in enumerate(themes):
        result = flow(draw, program, [source.name for source in data], theme)
        sinks.append(f"s{i}")
        program.lines.append(f'flow.sink("s{i}", {result.var})  # {theme}')
    return RandomProgram(program.text(), tuple(sinks), data, frozenset(program.used))


def _flow(draw: st.DrawFn, program: Program, names: list[str], theme: str) -> Draft:
    draft = _theme(draw, program, names, theme)
    more = draw(st.integers(0, 2))
    for _ in range(more):
        draft = parts.stateless(draw, program, draft, 1)
        if draft.steps and draft.steps < parts.MOST_STATEFUL and draw(st.integers(0, 2)) == 0:
            draft = parts.native(draw, program, draft)
    return draft


def _theme(draw: st.DrawFn, program: Program, names: list[str], theme: str) -> Draft:
    match theme:
        case "window":
            draft = parts.stateless(draw, program, parts.source(draw, names))
            return parts.first(draw, program, draft, stateful_steps.window)
        case "session":
            draft = parts.stateless(draw, program, parts.source(draw, names), 1)
            return parts.first(draw, program, draft, stateful_steps.session, stateful_steps.window)
        case "dedup":
            draft = parts.stateless(draw, program, parts.source(draw, names))
            draft = parts.first(draw, program, draft, stateful_steps.deduplicate)
            rest = [n for n in draft.columns if n not in draft.marks]
            if rest and draw(st.integers(0, 2)) == 1:
                # Without use for the event time Spark prunes it, and drops nothing as late.
                columns = {n: draft.columns[n] for n in rest}
                code = f"{draft.var}.select({rest})"
                draft = program.frame(draft, code, "time pruned", columns=columns, marks=())
            return draft
        case "within":
            draft = parts.stateless(draw, program, parts.source(draw, names))
            return parts.first(draw, program, draft, stateful_steps.deduplicate_within)
        case "chained":
            draft = parts.stateless(draw, program, parts.source(draw, names), 1)
            draft = parts.first(draw, program, draft, stateful_steps.window)
            if draw(st.booleans()):
                draft = parts.first(draw, program, draft, stateful_steps.group_by_time)
            return parts.native(draw, program, draft)
        case "static":
            draft = parts.stateless(draw, program, parts.source(draw, names), 1)
            draft = parts.first(draw, program, draft, join_steps.static)
            return parts.native(draw, program, draft) if draw(st.booleans()) else draft
        case "stateless":
            draft = parts.source(draw, names)
            for _ in range(3):
                draft = parts.stateless(draw, program, draft, 2)
            return draft
    return _two_inputs(draw, program, names, theme)


def _two_inputs(draw: st.DrawFn, program: Program, names: list[str], theme: str) -> Draft:
    left, right = parts.two(draw, program, names)
    match theme:
        case "union":
            form = draw(st.integers(0, 3))
            if form == 1:
                right = steps.with_column(draw, program, right)
            if form == 3:
                left = steps.drop(draw, program, left)
            if form == 2:
                # A join lets its watermark lag behind: the union must wait for the slower side.
                joined = join_steps.streams(draw, program, left, right) or left
                left, right = parts.narrowed(program, joined), parts.narrowed(program, right)
                program.used.add("union of a join")
                return parts.first(
                    draw,
                    program,
                    stateful_steps.union(draw, program, left, right) or left,
                    stateful_steps.window,
                )
            both = stateful_steps.union(draw, program, left, right) or left
            return parts.native(draw, program, both) if draw(st.booleans()) else both
        case "join by time":
            return join_steps.by_time(draw, program, left, right) or left
        case "aggregate then join":
            a = parts.first(draw, program, left, stateful_steps.window)
            b = parts.first(draw, program, right, stateful_steps.window)
            return join_steps.by_time(draw, program, a, b) or a
    both = join_steps.streams(draw, program, left, right) or left
    if theme == "join then aggregate":
        if len(both.marks) > 1:
            dropped = f'{both.var}.drop("{both.marks[1]}")'
            columns = {n: k for n, k in both.columns.items() if n != both.marks[1]}
            both = program.frame(both, dropped, "drop", columns=columns, marks=both.marks[:1])
        return parts.first(draw, program, both, stateful_steps.window)
    return both
