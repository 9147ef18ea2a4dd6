"""Random stateless steps, written as a user would: Columns, SQL strings, `frame["c"]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from headwater.testing.functions import COPIES, WORDS

if TYPE_CHECKING:
    from headwater.testing.drafts import Draft, Program


def condition(draw: st.DrawFn, draft: Draft) -> str:
    """A condition over a frame, as Python code."""
    numbers, texts = draft.numbers(), draft.of("string")
    options = []
    if numbers:
        n, m = draw(st.sampled_from(numbers)), draw(st.sampled_from(numbers))
        limit = draw(st.integers(0, 6))
        options += [
            f'"{n} > {limit}"',
            f'"{n} <= {limit} or {m} is null"',
            f'"{n} % 3 <> 1"',
            f'F.col("{n}") != {limit}',
            f'{draft.var}["{n}"].isNotNull() & ({draft.var}["{m}"] >= {limit})',
            f'~(F.col("{n}").isin(1, {limit}))',
            f'"{n} between {limit} and {limit + 4}"',
            f'"coalesce({n}, {m}, 1) >= {limit}"',
        ]
    if texts:
        t = draw(st.sampled_from(texts))
        options += [f"\"{t} like 'a%'\"", f'F.length("{t}") < 2', f"\"not ({t} = 'b')\""]
    return draw(st.sampled_from(options or ['"true"']))


def number(draw: st.DrawFn, draft: Draft) -> str:
    """An integer expression in SQL."""
    numbers = draft.numbers()
    if not numbers:
        return "7"
    n, m = draw(st.sampled_from(numbers)), draw(st.sampled_from(numbers))
    options = [
        f"{n} + 1",
        f"{n} * 2 - {m}",
        f"coalesce({n}, -1)",
        f"case when {n} > 4 then 1 when {n} is null then 2 else {m} end",
        f"if({n} > {m}, {n}, {m})",
        f"greatest({n}, {m})",
        f"abs({n} - 5)",
    ]
    return draw(st.sampled_from(options))


def filter_(draw: st.DrawFn, program: Program, draft: Draft) -> Draft:
    """`filter` or `where`."""
    method = draw(st.sampled_from(["filter", "where"]))
    return program.frame(draft, f"{draft.var}.{method}({condition(draw, draft)})", "filter")


def select(draw: st.DrawFn, program: Program, draft: Draft) -> Draft:
    """`select` or `selectExpr`: some columns, perhaps in another order, and a new one."""
    names = draw(st.permutations(list(draft.columns)))
    # The event time mostly stays: without it nothing stateful can follow.
    keep = [n for n in names if n in draft.marks or draw(st.integers(0, 4)) > 0]
    keep = keep or names[:1]
    marks = tuple(m for m in draft.marks if m in keep)
    columns = {n: draft.columns[n] for n in keep}
    new, sql = _new_name(draft), number(draw, draft)
    columns[new] = "int"
    form = draw(st.integers(0, 2))
    if form == 0:
        made = ", ".join(f'"{c}"' for c in [*keep, f"cast({sql} as int) as {new}"])
        code = f"{draft.var}.selectExpr({made})"
    else:
        refs = [f'{draft.var}["{n}"]' if form == 1 else f'"{n}"' for n in keep]
        code = f'{draft.var}.select({", ".join(refs)}, F.expr("cast({sql} as int)").alias("{new}"))'
    return program.frame(draft, code, "select", columns=columns, marks=marks)


def with_column(draw: st.DrawFn, program: Program, draft: Draft) -> Draft:
    """`withColumn`: a new column, or one replaced."""
    replaceable = [n for n in draft.of("int") if n not in draft.marks]
    name = draw(st.sampled_from([_new_name(draft), *replaceable]))
    sql = f"cast({number(draw, draft)} as int)"
    code = f'{draft.var}.withColumn("{name}", F.expr("{sql}"))'
    return program.frame(draft, code, "with_column", columns={**draft.columns, name: "int"})


def rename(draw: st.DrawFn, program: Program, draft: Draft) -> Draft:
    """`withColumnRenamed`, of the event time too."""
    old, new = draw(st.sampled_from(list(draft.columns))), _new_name(draft)
    columns = {new if n == old else n: kind for n, kind in draft.columns.items()}
    marks = tuple(new if m == old else m for m in draft.marks)
    code = f'{draft.var}.withColumnRenamed("{old}", "{new}")'
    return program.frame(draft, code, "rename", columns=columns, marks=marks)


def drop(draw: st.DrawFn, program: Program, draft: Draft) -> Draft:
    """`drop` of a column that is not the event time."""
    names = [n for n in draft.columns if n not in draft.marks]
    if len(names) < 3:
        return filter_(draw, program, draft)
    name = draw(st.sampled_from(names))
    columns = {n: kind for n, kind in draft.columns.items() if n != name}
    form = draw(st.sampled_from([f'"{name}"', f'{draft.var}["{name}"]']))
    return program.frame(draft, f"{draft.var}.drop({form})", "drop", columns=columns)


def alias(draw: st.DrawFn, program: Program, draft: Draft) -> Draft:
    """`alias`, and a condition that uses it."""
    numbers = draft.numbers()
    name = draw(st.sampled_from(numbers)) if numbers else draw(st.sampled_from([*draft.columns]))
    code = f'{draft.var}.alias("x").filter("x.{name} is not null")'
    return program.frame(draft, code, "alias")


def explode(draw: st.DrawFn, program: Program, draft: Draft) -> Draft:
    """`explode` and its kin inside `select`, or in `withColumn`."""
    arrays = draft.of("array<int>")
    if not arrays:
        return with_column(draw, program, draft)
    array, new = draw(st.sampled_from(arrays)), _new_name(draft)
    rest = [n for n in draft.columns if n != array]
    columns = {n: draft.columns[n] for n in rest}
    kept = ", ".join(f'"{n}"' for n in rest)
    function = draw(st.sampled_from(EXPLODES))
    if function.startswith("pos"):
        code = f'{draft.var}.select({kept}, F.{function}("{array}").alias("{new}_at", "{new}"))'
        columns |= {f"{new}_at": "int", new: "int"}
    elif draw(st.booleans()):
        code = f'{draft.var}.select(F.{function}({draft.var}["{array}"]).alias("{new}"), {kept})'
        columns = {new: "int", **columns}
    else:
        code = f'{draft.var}.withColumn("{new}", F.{function}("{array}"))'
        columns = {**draft.columns, new: "int"}
    return program.frame(draft, code, function, columns=columns)


def flat_map(draw: st.DrawFn, program: Program, draft: Draft) -> Draft:
    """`flat_map` with a Python function; the event time is kept."""
    keep = [*draft.marks, *(n for n in ("id", "k", "v") if n in draft.columns)]
    if draft.columns.get("v") == "int" and draw(st.booleans()):
        function, schema, made = "copies", COPIES, {"part": "int", "twice": "int"}
    elif draft.columns.get("s") == "string":
        function, schema, made = "words", WORDS, {"word": "string"}
    else:
        return filter_(draw, program, draft)
    if set(made) & set(draft.columns):
        return filter_(draw, program, draft)
    columns = {n: draft.columns[n] for n in dict.fromkeys(keep)} | made
    code = f'{draft.var}.flat_map({function}, "{schema}", keep={list(dict.fromkeys(keep))})'
    return program.frame(draft, code, "flat_map", columns=columns)


def _new_name(draft: Draft) -> str:
    return next(name for i in range(99) if (name := f"c{i}") not in draft.columns)


EXPLODES = ("explode", "explode", "explode_outer", "posexplode", "posexplode_outer")

STATELESS = (filter_, select, with_column, rename, drop, alias, explode, explode, flat_map)
"""What a step without state may be; `explode` twice, for it has four forms."""
