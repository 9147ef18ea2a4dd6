"""Random steps over arrival order, of one input: windows of both kinds, and b-sort."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from headwater.testing.drafts import Draft, Program

TIMES = ("timestamp", "time")
NUMBERS = ("int", "bigint", "double")


def sortable(draft: Draft) -> list[str]:
    """The columns that rows can be ordered by."""
    return draft.of("string", "window", *NUMBERS, *TIMES)


def order_by(draw: st.DrawFn, program: Program, draft: Draft) -> str:
    """An argument `order_by=`: some columns, and all of them where rows have no places."""
    names = sortable(draft)
    if not draft.placed:
        chosen = draw(st.permutations(names))
        program.used.add("order_by without places")
    elif not draft.in_order and draw(st.integers(0, 3)) == 3 and names:
        chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
        program.used.add("order_by")
    else:
        return ""
    return f", order_by=[{', '.join(ordering(draft, name) for name in chosen)}]"


def ordering(draft: Draft, name: str) -> str:
    """A column to order by: of a window its end."""
    return f'F.col("{name}.end")' if draft.columns[name] == "window" else f'"{name}"'


def _by(draw: st.DrawFn, program: Program, draft: Draft, most: int = 2) -> tuple[str, ...]:
    if draft.marks and draw(st.integers(0, 7)) == 7:
        program.used.add("by event time or window")
        return draft.marks
    number = min(draw(st.sampled_from([1, 0, 2])), most)
    return tuple(draw(st.permutations(draft.of("int", "string")))[:number])


def _measures(draw: st.DrawFn, draft: Draft, marked: bool) -> tuple[str, dict[str, str]]:
    """Some aggregates, as Python code, and the columns that they make."""
    options = {"n": ('F.count("*")', "bigint")}
    texts, numbers = draft.of("string"), draft.numbers()
    if numbers:
        n = draw(st.sampled_from(numbers))
        kind = draft.columns[n]
        options |= {
            "listed": (f'F.collect_list("{n}")', f"array<{kind}>"),
            "total": (f'F.sum("{n}")', "bigint"),
            "more": (f'F.sum(F.col("{n}") * 2 + 1)', "bigint"),
            "lo": (f'F.min("{n}")', kind),
            "hi": (f'F.expr("max({n})")', kind),
            "mean": (f'F.avg("{n}")', "double"),
            "known": (f'F.count("{n}")', "bigint"),
            "kinds": (f'F.size(F.collect_set("{n}"))', "int"),
            "others": (f'F.count_distinct("{n}")', "bigint"),
            "opened": (f'F.first("{n}")', kind),
            "closed": (f'F.last("{n}")', kind),
            "found": (f'F.collect_set("{n}")', f"array<{kind}>"),
            "spread": (f'F.stddev("{n}")', "double"),
            "spread_all": (f'F.stddev_pop("{n}")', "double"),
            "squares": (f'F.variance("{n}")', "double"),
            "squares_all": (f'F.var_pop("{n}")', "double"),
        }
    if texts:
        t = draw(st.sampled_from(texts))
        options |= {
            "letters": (f'F.collect_list("{t}")', "array<string>"),
            "word_0": (f'F.first("{t}")', "string"),
            "most": (f'F.max("{t}")', "string"),
            "texts": (f'F.count_distinct("{t}")', "bigint"),
        }
    chosen = draw(st.permutations(list(options)))[: draw(st.sampled_from([3, 1, 2, 4]))]
    made = {name: options[name][1] for name in chosen}
    code = [f'{options[name][0]}.alias("{name}")' for name in chosen]
    if marked and draft.time is not None:
        made["last"] = "timestamp"
        code.append(f'F.max("{draft.time}").alias("last")')
    return ", ".join(code), made


def _windowed(draw: st.DrawFn, program: Program, draft: Draft, code: str, feature: str) -> Draft:
    """The windows with their keys and aggregates; mostly the event time lives on."""
    by = _by(draw, program, draft)
    marks = tuple(m for m in draft.marks if m in by)
    aggregates, made = _measures(draw, draft, marked=not marks and draw(st.integers(0, 3)) < 3)
    if set(made) & set(by):
        by, marks = (), ()
    if "last" in made:
        marks = ("last",)
    names = ", ".join(f'"{name}"' for name in by)
    keyed = f"{code}.by({names})" if bool(by) or draw(st.booleans()) else code
    columns = {**{name: draft.columns[name] for name in by}, **made}
    draft = program.frame(
        draft,
        f"{keyed}.agg({aggregates})",
        feature,
        columns=columns,
        marks=marks,
        steps=draft.steps + 1,
        placed=True,
    )
    if "found" in made:
        # A set has no order: sorted, so that it compares.
        code = f'{draft.var}.withColumn("found", F.sort_array("found"))'
        draft = program.frame(draft, code, "collect_set")
    return draft


def count_window(draw: st.DrawFn, program: Program, draft: Draft) -> Draft:
    """Windows of a few rows."""
    size = draw(st.sampled_from([2, 3, 1, 4]))
    slide = draw(st.sampled_from([None, *range(1, size + 1)]))
    sizes = f"{size}" if slide is None else f"{size}, {slide}"
    code = f"{draft.var}.count_window({sizes}{order_by(draw, program, draft)})"
    return _windowed(draw, program, draft, code, "count_window")


def value_window(draw: st.DrawFn, program: Program, draft: Draft) -> Draft | None:
    """Windows of a few units or seconds."""
    options = [names for kinds in (TIMES, NUMBERS) if (names := draft.of(*kinds))]
    if not options:
        return None
    on = draw(st.sampled_from(draw(st.sampled_from(options))))
    if draft.columns[on] in TIMES:
        seconds = draw(st.sampled_from([(10, 10), (20, 5), (30, 12), (7, 1)]))
        sizes = ", ".join(f'"{n} seconds"' for n in seconds)
        program.used.add("value_window of time")
    else:
        sizes = draw(st.sampled_from(["2, 1", "3, 3", "4, 2", "2.5, 0.5", "1, 1"]))
        program.used.add("value_window of numbers")
    code = f'{draft.var}.value_window({sizes}, "{on}"{order_by(draw, program, draft)})'
    return _windowed(draw, program, draft, code, "value_window")


def b_sort(draw: st.DrawFn, program: Program, draft: Draft) -> Draft | None:
    """A sort with a small buffer."""
    options = draft.of("string", *NUMBERS, *TIMES)
    if not options:
        return None
    slack = draw(st.sampled_from([2, 1, 3, 5, 0]))
    on = draw(st.lists(st.sampled_from(options), min_size=1, max_size=2, unique=True))
    by = list(_by(draw, program, draft, most=1)) if draw(st.booleans()) else []
    keys = f", by={by}" if by else ""
    code = f"{draft.var}.b_sort({slack}, {on}{keys}{order_by(draw, program, draft)})"
    return program.frame(draft, code, "b_sort", steps=draft.steps + 1, placed=True)


ORDERED = (count_window, value_window, b_sort)
