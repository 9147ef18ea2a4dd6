"""Random joins: two streams within a range of time, by equal times, by window; static sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from headwater.testing.drafts import Draft, Program

STATIC_ROWS = [(10, 0, "north"), (11, 1, "south"), (12, 1, "east"), (13, None, "west")]
STATIC_SCHEMA = "zid bigint, k int, zone string"

Items = list[tuple[str, str, str]]
"""A select list over a join: (side, column, name)."""


def _renamed(left: Draft, right: Draft, keep_time: bool) -> tuple[Items, dict[str, str]]:
    """A select list without clashes, and the columns that it makes."""
    items = [("l", n, n) for n in left.columns]
    columns = dict(left.columns)
    for name, kind in right.columns.items():
        if name in right.marks and not keep_time:
            continue
        new = name if name not in columns else f"r_{name}"
        if new in columns:
            continue
        items.append(("r", name, new))
        columns[new] = kind
    return items, columns


def streams(draw: st.DrawFn, program: Program, left: Draft, right: Draft) -> Draft | None:
    """Two streams with equal keys and times within a range of each other."""
    keys = [(a, b) for a in left.of("int", "string") for b in right.of(left.columns[a])]
    if left.time is None or right.time is None or not keys:
        return None
    a, b = draw(st.sampled_from(keys))
    how = draw(st.sampled_from(["left_outer", "inner", "left"]))
    before, after = draw(st.sampled_from([5, 12, 0])), draw(st.sampled_from([8, 20, 0]))
    keep_time = draw(st.integers(0, 3)) == 0
    items, columns = _renamed(left, right, keep_time)
    feature = "join " + ("inner" if how == "inner" else "outer")
    if left.sources & right.sources:
        program.used.add("self join")
    by_reference = not left.sources & right.sources and draw(st.booleans())
    if by_reference:
        code = _by_reference(draw, left, right, (a, b), (before, after), how, items)
    else:
        code = _by_alias(draw, left, right, (a, b), (before, after), how, items)
    second = next((new for side, n, new in items if side == "r" and n in right.marks), None)
    marks = (left.time,) if second is None else (left.time, second)
    return program.frame(
        left,
        code,
        feature,
        columns=columns,
        marks=marks,
        steps=max(left.steps, right.steps) + 1,
        sources=left.sources | right.sources,
        placed=False,
    )


def _by_reference(
    draw: st.DrawFn,
    left: Draft,
    right: Draft,
    key: tuple[str, str],
    width: tuple[int, int],
    how: str,
    items: Items,
) -> str:
    lt, rt = f"{left.var}.{left.time}", f'{right.var}["{right.time}"]'
    low, high = (f'F.expr("INTERVAL {n} SECONDS")' for n in width)
    strict = draw(st.booleans())
    bounds = f"({rt} {'>' if strict else '>='} {lt} - {low}) & ({rt} <= {lt} + {high})"
    if draw(st.booleans()):
        bounds = f"({lt} - {low} <= {rt}) & ({lt} >= {rt} - {high})"
    on = f'({left.var}["{key[0]}"] == {right.var}.{key[1]}) & {bounds}'
    extra = _extra(draw, left, right, how)
    if extra:
        side, name, limit = extra
        var = left.var if side == "l" else right.var
        on += f' & ({var}["{name}"] > {limit})'
    vars_ = {"l": left.var, "r": right.var}
    refs = [
        f'{vars_[side]}["{n}"]' + (f'.alias("{new}")' if new != n else "") for side, n, new in items
    ]
    return f'{left.var}.join({right.var}, {on}, "{how}").select({", ".join(refs)})'


def _by_alias(
    draw: st.DrawFn,
    left: Draft,
    right: Draft,
    key: tuple[str, str],
    width: tuple[int, int],
    how: str,
    items: Items,
) -> str:
    lt, rt = f"l.{left.time}", f"r.{right.time}"
    low, high = (f"INTERVAL {n} SECONDS" for n in width)
    on = f"l.{key[0]} = r.{key[1]} and {rt} between {lt} - {low} and {lt} + {high}"
    extra = _extra(draw, left, right, how)
    if extra:
        side, name, limit = extra
        on += f" and {side}.{name} > {limit}"
    made = ", ".join(f'"{side}.{n} as {new}"' for side, n, new in items)
    joined = f'{left.var}.alias("l").join({right.var}.alias("r"), F.expr("{on}"), "{how}")'
    return f"{joined}.selectExpr({made})"


def _extra(draw: st.DrawFn, left: Draft, right: Draft, how: str) -> tuple[str, str, int] | None:
    """Sometimes one more condition, over one side alone: not the side that an outer join keeps."""
    side = draw(st.sampled_from(["", "", "l" if how == "inner" else "r", "r"]))
    numbers = (left if side == "l" else right).of("int")
    if not side or not numbers:
        return None
    return side, draw(st.sampled_from(numbers)), draw(st.integers(0, 4))


def by_time(draw: st.DrawFn, program: Program, left: Draft, right: Draft) -> Draft | None:
    """Two streams by equal event times, or two window aggregates by their windows."""
    if len(left.marks) != 1 or len(right.marks) != 1:
        return None
    (a,), (b,) = left.marks, right.marks
    if left.columns[a] != right.columns[b]:
        return None
    how = draw(st.sampled_from(["left", "inner"]))
    items, columns = _renamed(left, right, keep_time=False)
    kind = left.columns[a]
    feature = "join by window" if kind == "window" else "join by time"
    shared = [n for n in left.of("int") if right.columns.get(n) == "int"]
    equalities = [f"l.{a} = r.{b}"]
    if draw(st.booleans()) and shared:
        equalities.append(f"l.{shared[0]} = r.{shared[0]}")
    made = ", ".join(f'"{side}.{n} as {new}"' for side, n, new in items)
    on = " and ".join(equalities)
    code = (
        f'{left.var}.alias("l").join({right.var}.alias("r"), F.expr("{on}"), "{how}")'
        f".selectExpr({made})"
    )
    clashing = (set(left.columns) & set(right.columns)) - {a}
    if a == b and not clashing and draw(st.booleans()):
        code = f'{left.var}.join({right.var}, "{a}", "{how}")'
        columns = {
            a: kind,
            **{n: k for n, k in {**left.columns, **right.columns}.items() if n != a},
        }
    return program.frame(
        left,
        code,
        feature,
        columns=columns,
        marks=(a,),
        steps=max(left.steps, right.steps) + 1,
        sources=left.sources | right.sources,
        placed=False,
    )


def static(draw: st.DrawFn, program: Program, draft: Draft) -> Draft | None:
    """A stream with a static side, traced (`zones`) or plain (`plain_zones`)."""
    numbers = draft.of("int")
    if not numbers or {"zid", "zone"} & set(draft.columns):
        return None
    how = draw(st.sampled_from(["inner", "left_outer"]))
    traced = draw(st.booleans())
    side = "zones" if traced else "plain_zones"
    feature = f"static {'traced' if traced else 'plain'} {'inner' if how == 'inner' else 'outer'}"
    if "k" in numbers and draw(st.booleans()):
        code = f'{draft.var}.join({side}, "k", "{how}")'
        rest = {n: kind for n, kind in draft.columns.items() if n != "k"}
        columns = {"k": "int", **rest, "zid": "bigint", "zone": "string"}
    else:
        n = draw(st.sampled_from(numbers))
        items = ", ".join(f'"l.{c} as {c}"' for c in draft.columns)
        other, key = (f'{side}.alias("z")', "z.k")
        if not traced:
            other, key = f'{side}.withColumnRenamed("k", "zk")', "zk"
        code = (
            f'{draft.var}.alias("l").join({other}, F.expr("l.{n} = {key}"), "{how}")'
            f'.selectExpr({items}, "zid", "zone")'
        )
        columns = {**draft.columns, "zid": "bigint", "zone": "string"}
    return program.frame(draft, code, feature, columns=columns, placed=False)
