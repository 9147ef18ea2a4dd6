"""On random patterns and sequences, the engine finds what a matcher that tries everything finds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from headwater.errors import FlowError
from headwater.ordered.patterns import Pattern
from headwater.ordered.patterns.automaton import ACCEPT, compiled
from headwater.ordered.patterns.parsing import (
    Choice,
    Repeat,
    Series,
    Tree,
    Variable,
    nullable,
    parse,
)
from headwater.ordered.patterns.parsing import variables as variables_of
from headwater.testing.patterns import Found, Matcher, measure, ways
from tests.ordered.sequences import Batch, Engine, Row, engine_found
from tests.support import amount

SETTINGS = settings(
    deadline=None,
    max_examples=amount(40, 500),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)

Draw = Any

OWN = ["v = 0", "v >= 1", "v <= 1", "v in (0, 2)", "{own}.v <> 1", "v is not null"]
LOOSE = ["v >= 0", "v is not null", "v <= 1", "count({own}.*) < 4", "v in (0, 1)"]
BACK = ["v > prev(v)", "v >= coalesce(prev({own}.v, 2), 1)", "prev(v) is null or v = 2"]
SEEN = [
    "v > {other}.v",
    "v = {other}.v",
    "v = {other}.v + 1 and count({own}.*) = 1",
    "sum({other}.v) = 2 and v < 2",
    "v >= coalesce(last({other}.v), 1)",
    "v <= first({other}.v) or {other}.v is null",
    "v <> first({own}.v) or count({own}.*) = 1",
    "count({own}.*) < 3",
    "count({other}.*) >= 1 and v > 0",
    "count(*) <= 4",
    "count({other}.v) < 2",
    "sum({own}.v) < 4",
    "sum(v + 1) between 1 and 7",
    "avg({own}.v) >= 1",
    "min({own}.v) = max({own}.v)",
    "case when {other}.v > 1 then v < 2 else v > 0 end",
    "not (v = max({other}.v))",
    "abs(v - {other}.v) = 1 and v >= prev(v)",
    "v in ({other}.v, 3) and v < 3",
]

MEASURES = {
    "classifiers": ("classifiers()", pa.list_(pa.string())),
    "number": ("match_number()", pa.int64()),
    "first": ("first(A.v)", pa.int64()),
    "last": ("A.v", pa.int64()),
    "rows": ("count(A.*)", pa.int64()),
    "total": ("sum(v * 2)", pa.int64()),
    "mean": ("avg(A.v)", pa.float64()),
    "least": ("min(A.v)", pa.int64()),
    "most": ("max(v)", pa.int64()),
    "all": ("collect_list(v)", pa.list_(pa.int64())),
}

BOOLEANS = st.booleans()
VARIABLES = st.sampled_from("ABC").map(Variable)
OFTEN = st.sampled_from(
    [
        "(A | B)+ C",
        "(A | B)+? C",
        "(A | B){2,3} C",
        "A B+ C",
        "A B C",
        "A+ B+ C?",
        "(A B? | A C)+",
        "A (B | C)*? A",
        "A A B C | A B",
        "(A? B?){1,3} C",
        "A ((B??)? C??){2,}",
        "(A{2} | B)+? C*",
    ]
).map(parse)
"""Patterns with many ways to match the same rows."""

COUNTS = st.sampled_from([(0, 1), (0, None), (1, None), (2, 2), (1, 2), (0, 2), (2, None), (2, 3)])


def trees() -> st.SearchStrategy[Tree]:
    """Patterns of up to five places."""
    return st.recursive(
        VARIABLES,
        lambda inner: st.one_of(
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: Series(tuple(parts))),
            st.lists(inner, min_size=2, max_size=3).map(lambda options: Choice(tuple(options))),
            st.builds(lambda part, c, greedy: Repeat(part, *c, greedy), inner, COUNTS, BOOLEANS),
        ),
        max_leaves=5,
    )


@st.composite
def patterns(draw: Draw, *, timed: bool) -> Pattern:
    """A pattern with conditions, some of which look at what was matched."""
    tree = draw(OFTEN | trees().filter(lambda each: not nullable(each)))
    names = variables_of(tree)
    kinds = draw(st.sampled_from([[OWN, OWN, BACK, SEEN, SEEN, None], [LOOSE, LOOSE, SEEN]]))
    define = {}
    for own in names:
        kind = draw(st.sampled_from(kinds))
        if kind is not None:
            other = draw(st.sampled_from(names))
            define[own] = draw(st.sampled_from(kind)).format(own=own, other=other)
    skips = [f"skip to {place} {v}" for place in ("first", "last") for v in names]
    after = st.sampled_from(
        ["skip past last row", "skip past last row", "skip to next row", *skips]
    )
    chosen = {n: text for n, (text, _) in MEASURES.items() if "A." not in text or "A" in names}
    time, skip = draw(st.none() | st.integers(0, 10) if timed else st.none()), draw(after)
    select = draw(st.sampled_from(["strict", "strict", "next"]))
    texts = {"define": tuple(define.items()), "measures": tuple(chosen.items())}
    with suppress(FlowError):
        return Pattern(str(tree), **texts, within=time, after_match=skip, select=select)
    # It never comes to an end without a time, but is fine with one.
    made = Pattern(str(tree), **texts, within=5, after_match=skip, select=select)
    assume(timed)
    return made


@st.composite
def sequences(draw: Draw) -> list[Row]:
    """Rows of one or two keys, mostly in the order of their times."""
    rows = []
    clock = 10
    for _ in range(draw(st.integers(1, 14))):
        clock += draw(st.integers(-1, 3))
        rows.append(
            {
                "v": draw(st.sampled_from([1, 0, 2, 1, 0, 2, 1, 0, 2, None])),
                "ts": clock if draw(st.integers(0, 19)) < 19 else None,
                "key": draw(st.sampled_from([0, 0, 1])),
            }
        )
    return rows


@st.composite
def cut(draw: Draw, rows: list[Row]) -> list[Batch]:
    """The rows in batches, some of them empty, with watermarks that rise."""
    sizes = draw(st.lists(st.integers(0, 4), max_size=6))
    batches: list[Batch] = []
    watermark = None
    at = 0
    for size in [*sizes, len(rows), 0]:
        if draw(BOOLEANS):
            watermark = (watermark or 8) + draw(st.integers(0, 12))
        batches.append((rows[at : at + size], watermark))
        at += size
    return batches


def engine(pattern: Pattern) -> Engine:
    return Engine(pattern, {name: MEASURES[name][1] for name, _ in pattern.measures})


def oracle(pattern: Pattern, batches: list[Batch]) -> dict[int, Matcher]:
    """A matcher for each key, each of which sees every batch."""
    matchers: dict[int, Matcher] = {}
    for key in sorted({row["key"] for rows, _ in batches for row in rows}):
        matchers[key] = Matcher(
            pattern.text,
            dict(pattern.define),
            pattern.within,
            pattern.after_match,
            pattern.select,
        )
        for number, (rows, watermark) in enumerate(batches):
            matchers[key].batch(number, [row for row in rows if row["key"] == key], watermark)
    return matchers


def preferred(tree: Tree, length: int) -> list[str]:
    """The words of up to so many variables that a tree matches, as the oracle prefers them."""

    def words(todo: Any, so_far: str) -> Iterator[str]:
        for way in ways(todo):
            if way is None:
                yield so_far
                return
            if len(so_far) < length:
                yield from words(way[1], so_far + way[0])

    return list(dict.fromkeys(islice(words((tree,), ""), 5_000)))


def followed(tree: Tree, length: int) -> list[str]:
    """The same, as the automaton prefers them."""
    automaton = compiled(tree)

    def words(state: int, so_far: str) -> Iterator[str]:
        for position in automaton.follow[state]:
            if position == ACCEPT:
                yield so_far
            elif len(so_far) < length:
                name = automaton.variables[automaton.symbols[position]]
                yield from words(position, so_far + name)

    return list(dict.fromkeys(islice(words(automaton.start, ""), 5_000)))


@SETTINGS
@given(trees())
def test_the_automaton_prefers_what_the_tree_prefers(tree: Tree) -> None:
    expected, found = preferred(tree, 4), followed(tree, 4)
    known = min(len(expected), len(found))
    assert expected[:known] == found[:known]
    assert set(expected) <= set(found) or set(found) <= set(expected)


@SETTINGS
@given(patterns(timed=True), sequences(), st.data())
def test_the_engine_finds_what_trying_everything_finds(
    pattern: Pattern, rows: list[Row], data: st.DataObject
) -> None:
    batches = data.draw(cut(rows))
    expected = {key: each.found for key, each in oracle(pattern, batches).items() if each.found}
    event(f"matches: {sum(map(len, expected.values()))}")
    assert engine_found(engine(pattern), batches) == expected


@SETTINGS
@given(
    st.sampled_from(["(A | B)+ C", "(A | B)+? C", "(A | B){2,4} C", "(A B? | B A?)+ C"]),
    st.sampled_from([text for text in SEEN if "{other}" in text]),
    st.sampled_from("AB"),
    st.sampled_from("AB"),
    st.lists(st.integers(0, 2), min_size=3, max_size=7),
)
def test_where_rows_may_be_of_either_variable(
    text: str, condition: str, own: str, other: str, values: list[int]
) -> None:
    """Every row may be an A or a B; what C asks for tells the ways to match them apart."""
    asked = f"{condition.format(own=own, other=other)} and v >= 0"
    define = (("A", "v >= 0"), ("B", "v >= 0"), ("C", asked))
    pattern = Pattern(text, define=define, measures=(("classifiers", "classifiers()"),))
    rows = [{"v": v, "ts": 0, "key": 0} for v in (*values, None)]
    expected = {key: each.found for key, each in oracle(pattern, [(rows, None)]).items()}
    assert engine_found(engine(pattern), [(rows, None)]) == {k: f for k, f in expected.items() if f}


@SETTINGS
@given(patterns(timed=False), sequences(), st.data())
def test_without_a_time_batches_change_nothing(
    pattern: Pattern, rows: list[Row], data: st.DataObject
) -> None:
    def shown(batches: list[Batch]) -> dict[int, list[Found]]:
        found = engine_found(engine(pattern), batches)
        return {key: [Found(0, f.rows, f.variables, f.place) for f in found[key]] for key in found}

    assert shown(data.draw(cut(rows))) == shown([(rows, None)])


@SETTINGS
@given(patterns(timed=True), sequences(), st.data())
def test_measures_are_those_of_the_matched_rows(
    pattern: Pattern, rows: list[Row], data: st.DataObject
) -> None:
    batches = data.draw(cut(rows))
    step = engine(pattern)
    made: dict[int, list[dict[str, Any]]] = {}
    for each, watermark in batches:
        for match in step.batch(each, watermark).to_pylist():
            made.setdefault(match["key"], []).append({n: match[n] for n, _ in pattern.measures})
    expected = {
        key: [
            {
                name: measure(
                    text, matcher.rows, tuple(zip(f.variables, f.rows, strict=True)), number
                )
                for name, text in pattern.measures
            }
            for number, f in enumerate(matcher.found)
        ]
        for key, matcher in oracle(pattern, batches).items()
        if matcher.found
    }
    assert made == expected


@SETTINGS
@given(patterns(timed=True), sequences(), st.data())
def test_the_state_holds_what_is_undecided(
    pattern: Pattern, rows: list[Row], data: st.DataObject
) -> None:
    """No more rows than from the earliest undecided one on, and those that `prev` looks at."""
    batches = data.draw(cut(rows))
    step = engine(pattern)
    for each, watermark in batches:
        step.batch(each, watermark)
    allowed = sum(
        len(matcher.rows) - matcher.start + min(pattern.conditions.back, matcher.start)
        for matcher in oracle(pattern, batches).values()
    )
    assert step.kept <= allowed
