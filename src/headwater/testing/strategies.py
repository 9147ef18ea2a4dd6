"""Hypothesis strategies for random flows: programs of Headwater's public API, with their data.

A program is Python text over the names `flow`, `F`, `sources` (a function that gives a source's
frame), `zones`, `plain_zones` and the functions of `headwater.testing.functions`. Several flows
share the sources of one program, each with a sink of its own, so that one streaming query
tests them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from headwater.testing import join_steps, stateful_steps, steps
from headwater.testing.drafts import Draft, Program
from headwater.testing.records import SourceData, source_data

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
    program = Program()
    for source in data:
        program.lines.append(f'{source.name} = sources("{source.name}")')
        if not source.declared:
            line = f'{source.name} = {source.name}.withWatermark("ts", "{source.delay}")'
            program.lines.append(line)
            program.used.add("withWatermark")
    sinks = []
    for i, theme in enumerate(themes):
        result = _flow(draw, program, names, theme)
        sinks.append(f"s{i}")
        program.lines.append(f'flow.sink("s{i}", {result.var})  # {theme}')
    return RandomProgram(program.text(), tuple(sinks), data, frozenset(program.used))


def _source(draw: st.DrawFn, names: list[str]) -> Draft:
    name = draw(st.sampled_from(names))
    return Draft(name, dict(COLUMNS), ("ts",), sources=frozenset({name}))


def _stateless(draw: st.DrawFn, program: Program, draft: Draft, most: int = 2) -> Draft:
    for _ in range(draw(st.integers(0, most))):
        draft = draw(st.sampled_from(steps.STATELESS))(draw, program, draft)
    return draft


def _first(
    draw: st.DrawFn, program: Program, draft: Draft, *options: Callable[..., Draft | None]
) -> Draft:
    """The first of the steps that fits the frame."""
    for step in options:
        made = step(draw, program, draft)
        if made is not None:
            return made
    return draft


def _two(draw: st.DrawFn, program: Program, names: list[str]) -> tuple[Draft, Draft]:
    """Two frames to bring together, mostly from different sources."""
    left, right = _source(draw, names), _source(draw, names)
    if left.var == right.var and len(names) > 1 and draw(st.integers(0, 2)) > 0:
        other = next(n for n in names if n != left.var)
        right = Draft(other, dict(COLUMNS), ("ts",), sources=frozenset({other}))
    if draw(st.booleans()):
        left = steps.filter_(draw, program, left)
    right = steps.filter_(draw, program, right)
    return left, right


def _flow(draw: st.DrawFn, program: Program, names: list[str], theme: str) -> Draft:
    draft = _theme(draw, program, names, theme)
    more = draw(st.integers(0, 2))
    for _ in range(more):
        draft = _stateless(draw, program, draft, 1)
        if draft.steps and draft.steps < MOST_STATEFUL and draw(st.integers(0, 2)) == 0:
            draft = _aggregate(draw, program, draft)
    return draft


def _aggregate(draw: st.DrawFn, program: Program, draft: Draft) -> Draft:
    if len(draft.marks) == 1 and draft.columns[draft.marks[0]] == "window" and draw(st.booleans()):
        draft = stateful_steps.window_time(draw, program, draft)
    order = draw(st.permutations(list(stateful_steps.STATEFUL)))
    return _first(draw, program, draft, *order)


def _theme(draw: st.DrawFn, program: Program, names: list[str], theme: str) -> Draft:
    match theme:
        case "window":
            draft = _stateless(draw, program, _source(draw, names))
            return _first(draw, program, draft, stateful_steps.window)
        case "session":
            draft = _stateless(draw, program, _source(draw, names), 1)
            return _first(draw, program, draft, stateful_steps.session, stateful_steps.window)
        case "dedup":
            draft = _stateless(draw, program, _source(draw, names))
            draft = _first(draw, program, draft, stateful_steps.deduplicate)
            rest = [n for n in draft.columns if n not in draft.marks]
            if rest and draw(st.integers(0, 2)) == 1:
                # Without use for the event time Spark prunes it, and drops nothing as late.
                columns = {n: draft.columns[n] for n in rest}
                code = f"{draft.var}.select({rest})"
                draft = program.frame(draft, code, "time pruned", columns=columns, marks=())
            return draft
        case "within":
            draft = _stateless(draw, program, _source(draw, names))
            return _first(draw, program, draft, stateful_steps.deduplicate_within)
        case "chained":
            draft = _stateless(draw, program, _source(draw, names), 1)
            draft = _first(draw, program, draft, stateful_steps.window)
            if draw(st.booleans()):
                draft = _first(draw, program, draft, stateful_steps.group_by_time)
            return _aggregate(draw, program, draft)
        case "static":
            draft = _stateless(draw, program, _source(draw, names), 1)
            draft = _first(draw, program, draft, join_steps.static)
            return _aggregate(draw, program, draft) if draw(st.booleans()) else draft
        case "stateless":
            draft = _source(draw, names)
            for _ in range(3):
                draft = _stateless(draw, program, draft, 2)
            return draft
    return _two_inputs(draw, program, names, theme)


def _narrowed(program: Program, draft: Draft) -> Draft:
    """The columns that every frame near a source has."""
    columns = {n: COLUMNS[n] for n in ("id", "ts", "k", "v")}
    code = f'{draft.var}.select("id", "ts", "k", "v")'
    return program.frame(draft, code, "select", columns=columns, marks=("ts",))


def _two_inputs(draw: st.DrawFn, program: Program, names: list[str], theme: str) -> Draft:
    left, right = _two(draw, program, names)
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
                left, right = _narrowed(program, joined), _narrowed(program, right)
                program.used.add("union of a join")
                return _first(
                    draw,
                    program,
                    stateful_steps.union(draw, program, left, right) or left,
                    stateful_steps.window,
                )
            both = stateful_steps.union(draw, program, left, right) or left
            return _aggregate(draw, program, both) if draw(st.booleans()) else both
        case "join by time":
            return join_steps.by_time(draw, program, left, right) or left
        case "aggregate then join":
            a = _first(draw, program, left, stateful_steps.window)
            b = _first(draw, program, right, stateful_steps.window)
            return join_steps.by_time(draw, program, a, b) or a
    both = join_steps.streams(draw, program, left, right) or left
    if theme == "join then aggregate":
        if len(both.marks) > 1:
            dropped = f'{both.var}.drop("{both.marks[1]}")'
            columns = {n: k for n, k in both.columns.items() if n != both.marks[1]}
            both = program.frame(both, dropped, "drop", columns=columns, marks=both.marks[:1])
        return _first(draw, program, both, stateful_steps.window)
    return both
