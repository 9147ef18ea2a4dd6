"""Random stateful steps and steps of two inputs, in the forms that Spark accepts in append mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from headwater.testing.drafts import Draft, Program

_SECONDS = [5, 10, 20, 30]


def _measures(draw: st.DrawFn, draft: Draft) -> tuple[str, dict[str, str]]:
    """Some aggregates, as Python code, and the columns that they make."""
    numbers = draft.numbers()
    options = {"n": ('F.count("*").alias("n")', "bigint")}
    if draft.time is not None:
        options["last"] = (f'F.max("{draft.time}").alias("last")', "time")
    if numbers:
        n = draw(st.sampled_from(numbers))
        options |= {
            "total": (f'F.sum("{n}").alias("total")', "bigint"),
            "lo": (f'F.min("{n}").alias("lo")', draft.columns[n]),
            "hi": (f'F.expr("max({n}) as hi")', draft.columns[n]),
            "mean": (f'F.avg("{n}").alias("mean")', "double"),
            "known": (f'F.count("{n}").alias("known")', "bigint"),
            "kinds": (f'F.size(F.collect_set("{n}")).alias("kinds")', "int"),
            "more": (
                f'(F.coalesce(F.sum("{n}"), F.lit(0)) + F.count("*")).alias("more")',
                "bigint",
            ),
        }
    chosen = draw(st.lists(st.sampled_from(sorted(options)), min_size=1, max_size=3, unique=True))
    made = {name: options[name][1] for name in chosen}
    return ", ".join(options[name][0] for name in chosen), made


def _keys(draw: st.DrawFn, draft: Draft, at_least: int = 0) -> list[str]:
    options = [n for n in draft.of("int", "string") if n not in draft.marks]
    return (
        draw(st.lists(st.sampled_from(options), min_size=at_least, max_size=2, unique=True))
        if options
        else []
    )


def window(draw: st.DrawFn, program: Program, draft: Draft) -> Draft | None:
    """A window aggregate: tumbling, sliding, with offset, over a time or a window column."""
    if len(draft.marks) != 1:
        return None
    mark = draft.marks[0]
    size, slide = draw(st.sampled_from(_SECONDS)), draw(st.sampled_from([0, 4, 5, 10, 7]))
    parts = [f'"{mark}"' if draw(st.booleans()) else f'F.col("{mark}")', f'"{size} seconds"']
    feature = "tumbling"
    if 0 < slide < size:
        parts.append(f'"{slide} seconds"')
        feature = "sliding"
        if draw(st.booleans()):
            parts.append(f'"{draw(st.integers(1, slide - 1))} seconds"')
            feature = "offset"
    if draft.columns[mark] == "window":
        program.used.add("window of window")
    return _grouped(
        draw, program, draft, f"F.window({', '.join(parts)})", feature, _keys(draw, draft)
    )


def session(draw: st.DrawFn, program: Program, draft: Draft) -> Draft | None:
    """A session window with keys; the gap is a constant or an expression."""
    keys = _keys(draw, draft, at_least=1)
    if len(draft.marks) != 1 or not keys:
        return None
    gap = f'"{draw(st.sampled_from([3, 5, 8, 12]))} seconds"'
    if draft.of("int") and draw(st.integers(0, 3)) == 0:
        n = draw(st.sampled_from(draft.of("int")))
        gap = f"F.expr(\"case when {n} > 3 then '4 seconds' else '9 seconds' end\")"
    code = f'F.session_window("{draft.marks[0]}", {gap})'
    return _grouped(draw, program, draft, code, "session", keys)


def _grouped(
    draw: st.DrawFn, program: Program, draft: Draft, window: str, feature: str, keys: list[str]
) -> Draft:
    name = "session_window" if feature == "session" else "window"
    if draw(st.integers(0, 3)) == 3 and "w" not in draft.columns:
        window, name = f'{window}.alias("w")', "w"
        program.used.add("window alias")
    parts = [(f'"{k}"', k, draft.columns[k]) for k in keys]
    if draft.numbers() and "odd" not in draft.columns and draw(st.integers(0, 4)) == 4:
        n = draw(st.sampled_from(draft.numbers()))
        parts.append((f'(F.col("{n}") % 2).alias("odd")', "odd", draft.columns[n]))
        program.used.add("key expression")
    at = draw(st.integers(0, len(parts)))
    parts.insert(at, (window, name, "window"))
    columns = {column: kind for _, column, kind in parts}
    grouped = f"{draft.var}.groupBy({', '.join(code for code, _, _ in parts)})"
    aggregates, made = _measures(draw, draft)
    code = f"{grouped}.agg({aggregates})"
    if set(made) & set(columns) or draw(st.integers(0, 4)) == 0:
        code, made = f"{grouped}.count()", {"count": "bigint"}
    if "count" in columns:
        code, made = f'{grouped}.agg(F.count("*").alias("rows"))', {"rows": "bigint"}
    if draft.steps:
        program.used.add("chained")
    return program.frame(
        draft,
        code,
        feature,
        columns={**columns, **made},
        marks=(name,),
        steps=draft.steps + 1,
        placed=False,
    )


def group_by_time(draw: st.DrawFn, program: Program, draft: Draft) -> Draft | None:
    """Groups by the event time itself, or by a window column that is there."""
    if len(draft.marks) != 1:
        return None
    mark = draft.marks[0]
    # Sessions stay sessions as a key, and Spark wants a key beside them.
    others = _keys(draw, draft, at_least=1 if draft.columns[mark] == "window" else 0)
    if draft.columns[mark] == "window" and not others:
        return None
    keys = [*others, mark]
    aggregates, made = _measures(draw, draft)
    if set(made) & set(keys):
        return None
    names = ", ".join(f'"{k}"' for k in keys)
    feature = "by window column" if draft.columns[mark] == "window" else "by event time"
    columns = {k: draft.columns[k] for k in keys} | made
    code = f"{draft.var}.groupBy({names}).agg({aggregates})"
    return program.frame(draft, code, feature, columns=columns, steps=draft.steps + 1, placed=False)


def window_time(draw: st.DrawFn, program: Program, draft: Draft) -> Draft:
    """The window column given up for its time, so that more kinds of step can follow."""
    (mark,) = draft.marks
    rest = [n for n in draft.columns if n != mark]
    name = "t" if "t" not in draft.columns else "t2"
    kept = "".join(f', "{n}"' for n in rest)
    columns = {name: "timestamp", **{n: draft.columns[n] for n in rest}}
    if not {"begun", "ended"} & set(columns) and draw(st.booleans()):
        kept += f', F.col("{mark}.start").alias("begun"), F.col("{mark}")["end"].alias("ended")'
        columns |= {"begun": "time", "ended": "time"}
        program.used.add("window fields")
    code = f'{draft.var}.select(F.window_time("{mark}").alias("{name}"){kept})'
    return program.frame(draft, code, "window_time", columns=columns, marks=(name,))


def deduplicate(draw: st.DrawFn, program: Program, draft: Draft) -> Draft | None:
    """`dropDuplicates` by all columns, by some, with or without the event time."""
    if len(draft.marks) != 1:
        return None
    names = [n for n in draft.columns if n not in draft.marks]
    subset = (
        draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)) if names else []
    )
    timed = draw(st.booleans()) or not subset
    if timed:
        subset = [*subset, draft.marks[0]]
    every = draw(st.integers(0, 3)) == 0
    code = f"{draft.var}.dropDuplicates({'' if every else subset})"
    feature = "dedup all" if every else "dedup with time" if timed else "dedup without time"
    return program.frame(draft, code, feature, steps=draft.steps + 1)


def deduplicate_within(draw: st.DrawFn, program: Program, draft: Draft) -> Draft | None:
    """`dropDuplicatesWithinWatermark`."""
    names = [n for n in draft.columns if n not in draft.marks]
    if draft.time is None or not names:
        return None
    subset = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    code = f"{draft.var}.dropDuplicatesWithinWatermark({subset})"
    return program.frame(draft, code, "dedup within", steps=draft.steps + 1)


def union(draw: st.DrawFn, program: Program, left: Draft, right: Draft) -> Draft | None:
    """`union` of frames of one shape, `unionByName` where the names agree or some are missing."""
    if len(left.marks) != 1 or len(right.marks) != 1:
        return None
    together = {
        "steps": max(left.steps, right.steps),
        "sources": left.sources | right.sources,
        "placed": left.placed and right.placed,
    }
    shared = {n: k for n, k in left.columns.items() if right.columns.get(n) == k}
    if set(shared) == set(left.columns) == set(right.columns) and left.marks == right.marks:
        same_order = list(left.columns) == list(right.columns)
        method = draw(st.sampled_from(["union", "unionByName"])) if same_order else "unionByName"
        code = f"{left.var}.{method}({right.var})"
        return program.frame(left, code, method, **together)
    if left.marks != right.marks or left.marks[0] not in shared:
        return None
    if any(left.columns[n] != right.columns[n] for n in set(left.columns) & set(right.columns)):
        return None
    code = f"{left.var}.unionByName({right.var}, allowMissingColumns=True)"
    columns = {**left.columns, **right.columns}
    feature = "union missing"
    return program.frame(left, code, feature, columns=columns, **together)


STATEFUL = (window, session, group_by_time, deduplicate, deduplicate_within)
