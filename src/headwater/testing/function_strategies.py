"""Hypothesis strategies for random flows with users' functions, services and concise extremes."""

from __future__ import annotations

from hypothesis import strategies as st

from headwater.testing import parts, stateful_steps, steps
from headwater.testing.drafts import Draft, Program
from headwater.testing.functions import DOUBLED, EXTREMES, RATED
from headwater.testing.records import source_data
from headwater.testing.strategies import RandomProgram, written

FUNCTION_THEMES = (
    "map",
    "answers",
    "failures",
    "group function",
    "positions",
    "group function chained",
    "concise",
    "concise session",
    "concise chained",
)
"""What each flow has, in turn."""


@st.composite
def function_programs(
    draw: st.DrawFn, themes: tuple[str, ...], batches: tuple[int, int] = (3, 7)
) -> RandomProgram:
    """A program with one flow, and so one sink, for each of the themes above."""
    names = ["a", "b"][: draw(st.integers(1, 2))]
    data = tuple(draw(source_data(n, 1000 * (i + 1), batches)) for i, n in enumerate(names))
    return written(draw, Program(), data, themes, _flow)


def _flow(draw: st.DrawFn, program: Program, names: list[str], theme: str) -> Draft:
    draft = parts.source(draw, names)
    if draw(st.booleans()):
        draft = draw(st.sampled_from([steps.filter_, steps.with_column]))(draw, program, draft)
    match theme:
        case "map":
            mapped = _map(program, draft)
            return parts.native(draw, program, mapped) if draw(st.booleans()) else mapped
        case "answers" | "failures":
            answered = _service(draw, program, draft, theme)
            return parts.native(draw, program, answered) if draw(st.booleans()) else answered
        case "group function" | "positions":
            return _apply(draw, program, draft, named=theme == "positions")
        case "group function chained":
            made = _apply(draw, program, draft, named=draw(st.booleans()), keep=True)
            return _chained(program, made, "F.sum('value').alias('sum')", "sum")
        case "concise":
            return _concise(draw, program, draft, session=False)
        case "concise session":
            return _concise(draw, program, draft, session=True)
    before = parts.first(draw, program, draft, stateful_steps.window)
    numbers = before.numbers()
    if not numbers:
        return before
    n = draw(st.sampled_from(numbers))
    return _chained(program, before, f"F.max('{n}').alias('best'), concise=True", "best")


def _map(program: Program, draft: Draft) -> Draft:
    columns = {n: draft.columns[n] for n in ("id", "ts", "k")}
    columns |= {"twice": "int", "wide": "boolean"}
    code = f'{draft.var}.map(functions.doubled, "{DOUBLED}", keep=["id", "ts", "k"])'
    return program.frame(draft, code, "map", columns=columns)


def _service(draw: st.DrawFn, program: Program, draft: Draft, which: str) -> Draft:
    least = draw(st.integers(1, 6))
    code = (
        f'{draft.var}.service(functions.rated, response="{RATED}", request=["v", "k"], '
        f'static={{"least": {least}}}, retries=0)'
    )
    if which == "answers":
        columns = {**draft.columns, "rate": "double"}
        return program.frame(draft, code, which, columns=columns)
    columns = {**draft.columns, "reason": "string", "attempts": "int"}
    return program.frame(draft, f"{code}.failures", which, columns=columns)


def _window(draw: st.DrawFn, *, session: bool) -> tuple[str, str]:
    """A window among the keys, and the name of its column."""
    if session:
        return (
            f'F.session_window("ts", "{draw(st.sampled_from([5, 12]))} seconds")',
            "session_window",
        )
    size = draw(st.sampled_from([10, 20]))
    slide = ', "7 seconds"' if draw(st.booleans()) else ""
    return f'F.window("ts", "{size} seconds"{slide})', "window"


def _apply(
    draw: st.DrawFn, program: Program, draft: Draft, *, named: bool, keep: bool = False
) -> Draft:
    session = not keep and draw(st.booleans())
    window, column = _window(draw, session=session)
    more = f', keep=["{column}"]' if keep else ""
    said = ', contributing="of"' if named else ""
    code = (
        f'{draft.var}.groupBy("k", {window})'
        f'.applyInPandas(functions.extremes, "{EXTREMES}"{said}{more})'
    )
    columns = {column: "window"} if keep else {}
    columns |= {"end": "string", "value": "int"} | ({} if named else {"of": "array<int>"})
    feature = "positions" if named else "group function"
    return program.frame(
        draft,
        code,
        f"{feature} of sessions" if session else feature,
        columns=columns,
        marks=(column,) if keep else (),
        steps=draft.steps + 1,
        placed=False,
    )


def _concise(draw: st.DrawFn, program: Program, draft: Draft, *, session: bool) -> Draft:
    window, column = _window(draw, session=session)
    a, b = (draw(st.sampled_from(draft.numbers())) for _ in range(2))
    made = {"lo": f'F.min("{a}").alias("lo")', "hi": f'F.expr("max({b} % 4) as hi")'}
    chosen = draw(st.lists(st.sampled_from(sorted(made)), min_size=1, unique=True))
    aggregates = ", ".join(made[name] for name in chosen)
    code = f'{draft.var}.groupBy("k", {window}).agg({aggregates}, concise=True)'
    columns = {"k": draft.columns["k"], column: "window"} | dict.fromkeys(chosen, "int")
    return program.frame(
        draft,
        code,
        "concise session" if session else "concise",
        columns=columns,
        marks=(column,),
        steps=draft.steps + 1,
        placed=False,
    )


def _chained(program: Program, draft: Draft, aggregate: str, made: str) -> Draft:
    """The rows of each window of an earlier aggregate taken together."""
    (mark,) = draft.marks
    code = f'{draft.var}.groupBy("{mark}").agg({aggregate})'
    columns = {mark: "window", made: "bigint"}
    return program.frame(draft, code, "chained", columns=columns, steps=draft.steps + 1)
