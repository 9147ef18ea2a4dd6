"""What conditions and measures of patterns may say, and what comes of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headwater.errors import FlowError, RunError
from headwater.names import GROUP, TIME
from headwater.ordered.patterns import Pattern, Patterns, values
from tests.ordered.sequences import ROW, Engine, matches, parse, pattern

# --- conditions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "sequence", "found"),
    [
        ("v > prev(v)", "a1 x3 x4 x4", "a1 x3 x4"),
        ("B.v > prev(B.v)", "a1 x3 x4 x4", "a1 x3 x4"),
        ("v > prev(v, 2)", "x1 a2 x1 x3 x4 x2", None),
        ("v > coalesce(prev(v, 2), 0)", "a2 x1 x3 x4 x2", "a2 x1 x3 x4"),
        ("v > A.v", "a2 x3 x4 x2", "a2 x3 x4"),
        ("v > last(A.v) and letter = 'x'", "a2 x3 y4", "a2 x3"),
        ("v > first(A.v) + 1", "a2 x4 x5 x3", "a2 x4 x5"),
        ("v >= first(B.v)", "a2 x4 x5 x3", "a2 x4 x5"),
        ("count(B.*) <= 2", "a2 x4 x5 x3", "a2 x4 x5"),
        ("count(*) <= 3", "a2 x4 x5 x3", "a2 x4 x5"),
        ("count(B.v) <= 1", "a2 x x5 x3", "a2 x x5"),
        ("sum(B.v) < 10", "a2 x4 x5 x3", "a2 x4 x5"),
        ("sum(B.v * 2) < 20", "a2 x4 x5 x3", "a2 x4 x5"),
        ("sum(v) < 12", "a2 x4 x5 x3", "a2 x4 x5"),
        ("avg(B.v) > 4", "a2 x5 x4 x1", "a2 x5 x4"),
        ("v <= min(B.v) and v <= max(A.v)", "a5 x4 x3 x4", "a5 x4 x3"),
        ("v between A.v and A.v + 2", "a2 x4 x3 x5", "a2 x4 x3"),
        ("v in (A.v, 7)", "a2 x2 x7 x3", "a2 x2 x7"),
        ("not v < A.v", "a2 x2 x7 x1", "a2 x2 x7"),
        ("v = A.v or B.v = 7", "a2 x2 x7 x1", "a2 x2 x7"),
        ("prev(v) is not null and v > -3 + abs(-A.v)", "a5 x3 x4 x1", "a5 x3 x4"),
        ("case when v > A.v then true else false end", "a2 x3 x4 x2", "a2 x3 x4"),
        ("if(v > A.v, v < 9, false)", "a2 x3 x4 x9", "a2 x3 x4"),
        ("case A.v when 2 then v > 2 end", "a2 x3 x4 x2", "a2 x3 x4"),
        ("(v % A.v) = 1", "a2 x3 x5 x4", "a2 x3 x5"),
        ("v / A.v > 1.5", "a2 x4 x5 x3", "a2 x4 x5"),
        ("v <=> A.v", "a2 x2 x2 x", "a2 x2 x2"),
        ("v / (A.v - A.v) > 0", "a2 x4", None),
        ("(v > A.v) is true", "a2 x4 x", "a2 x4"),
        ("v > A.v and (letter = 'x' or v > 8)", "a2 x4 y9 y8", "a2 x4 y9"),
        ("v > 0L and A.v > 1e0 and -1.5D < A.v", "a2 x4 x0", "a2 x4"),
        ("v > A.v * 1.5BD and A.v < 3.0F and A.v = 2S", "a2 x4 x3", "a2 x4"),
        ("A.v = mean(A.v) and v > A.v", "a2 x4 x1", "a2 x4"),
    ],
)
def test_conditions(condition: str, sequence: str, found: str | None) -> None:
    """Of `A B+`, where B has the condition; the row that ends it is the last."""
    expected = [] if found is None else [f"1: {found}"]
    *rows, last = sequence.split()
    text = f"{' '.join(rows)} | {last} z"
    assert matches("A B+", text, define={"B": condition})[:1] == expected


D, HOUR = Decimal, timedelta(hours=1)
AT = datetime(2024, 1, 1, tzinfo=UTC)
NAN = float("nan")


@pytest.mark.parametrize(
    ("function", "a", "b", "value"),
    [
        (values.add, 1, 2, 3),
        (values.add, D("1.1"), 2, D("3.1")),
        (values.add, D("1.5"), 2.0, 3.5),
        (values.add, 2.0, D("1.5"), 3.5),
        (values.add, D("1" * 38), D("1e-6"), D("1" * 38 + ".000001")),
        (values.add, AT, HOUR, AT + HOUR),
        (values.subtract, AT + HOUR, AT, HOUR),
        (values.subtract, AT + HOUR, HOUR, AT),
        (values.subtract, D("1.5"), 1, D("0.5")),
        (values.multiply, D("1.5"), 2, D("3.0")),
        (values.multiply, HOUR, 2, 2 * HOUR),
        (values.divide, 3, 2, 1.5),
        (values.divide, D(3), 2, D("1.5")),
        (values.divide, HOUR, 2, HOUR / 2),
        (values.divide, 3, 0, None),
        (values.remainder, -7, 3, -1),
        (values.remainder, 7, -3, 1),
        (values.remainder, -7.5, 2, -1.5),
        (values.remainder, D("-7.5"), 2, D("-1.5")),
        (values.remainder, 7, 0, None),
        (values.equal, NAN, NAN, True),
        (values.equal, D("1.1"), 1.1, True),
        (values.less, 1e300, NAN, True),
        (values.less, NAN, 1, False),
        (values.less, "a", "b", True),
    ],
)
def test_values(function: Any, a: Any, b: Any, value: Any) -> None:
    assert function(a, b) == value


def test_signs_of_decimals_keep_their_digits() -> None:
    long = D("1" * 38)
    assert values.negative(long) == D("-" + "1" * 38)
    assert values.absolute(values.negative(long)) == long


def test_null_is_neither_true_nor_false() -> None:
    for condition in ("v > A.v", "not v > A.v", "v in (A.v, 1)", "null and A.v > 0"):
        assert matches("A B C", "a1 x c2", define={"B": condition}) == []
    assert matches("A B C", "a1 x c2", define={"B": "v > A.v or A.v = 1"}) == ["0: a1 x c2"]


def test_previous_rows_reach_behind_the_start_and_over_batches() -> None:
    define = {"A": "v > prev(v, 2)"}
    assert matches("A B", "x1 | x5 | a3 | b4", define=define) == ["3: a3 b4"]
    engine = Engine(pattern("A B", define=define), {})
    for rows, _ in parse("x1 | x5 | x0 | x0"):
        engine.batch(rows, None)
    assert engine.kept == 2


def test_what_spark_evaluates() -> None:
    made = Pattern(
        "A B C",
        define=(
            ("A", "A.letter = 'a'  and upper(A.letter) <> 'X'"),
            ("B", "B.v > 3 and letter like 'b%' and v * 2 > last(A.v * 2) and v < prev(v + 1)"),
            ("C", "v * 2 > B.v"),
        ),
        measures=(("total", "sum(B.v * 2)"), ("n", "count(A.*)"), ("v", "A.v")),
    )
    texts = list(made.native.values())
    assert texts == [
        "letter = 'a'  and upper(letter) <> 'X'",
        "v > 3 AND letter LIKE 'b%'",
        "v * 2",
        "v",
        "v + 1",
    ]
    assert list(made.native) == [f"__hw_c{i}" for i in range(5)]
    assert made.conditions.booleans == {"__hw_c0", "__hw_c1"}
    assert made.conditions.columns == set(made.native)
    assert [m.typed_by(made.native) for m in made.columns] == ["sum(v * 2)", "count(1)", "last(v)"]
    kinds = {"n": "match_number()", "one": "classifier()", "all": "classifiers()"}
    made = Pattern("A", measures=tuple(kinds.items()))
    typed = [m.typed_by(made.native) for m in made.columns]
    assert typed == ["count(1)", "first('')", "collect_list('')"]


def test_what_spark_evaluates_is_as_it_was_written() -> None:
    conditions = {
        "to_timestamp(V.s) > V.ts": "to_timestamp(s) > ts",
        "1.5BD < v": "1.5BD < v",
        "s rlike '\\\\d+'": "s rlike '\\\\d+'",
        "A.v > 0 and to_timestamp(V.s) > ts": "to_timestamp(s) > ts",
        "A.v > struct(V.v, v).v": "struct(v, v).v",
        "A.v > V.place.lat": "place.lat",
        "A.v > V.`odd name`": "`odd name`",
        "A.name = 'a\\\\b'": "'a\\\\b'",
        "v > 1 -- or so": "v > 1",
    }
    for condition, text in conditions.items():
        native = Pattern("A V", define=(("V", condition),)).native
        assert text in native.values(), condition


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("v >", "define B: can't parse 'v >'"),
        ("", "'' is not one expression"),
        ("select 1", "define B: can't parse 'select 1'"),
        ("v > 1; v < 2", "is not one expression"),
        ("v > (select 1)", "is not one expression"),
        (3, "define B takes SQL text, not int"),
        ("upper(A.letter) = 'X'", "define B: upper(A.letter) is not supported over matched rows"),
        ("stddev(A.v) > 1", "stddev(A.v) is not supported over matched rows"),
        ("next(v) > 1", "next(v) is not supported over matched rows: a condition can't look ahead"),
        ("match_number() > 1", "is not supported over matched rows: it is known to measures only"),
        ("collect_list(A.v) = 1", "collect_list(A.v) is not supported over matched rows"),
        ("sum(A.v) over () > 1", "is not supported over matched rows"),
        ("sum(distinct A.v) > 1", "sum(DISTINCT A.v) must have one argument, without DISTINCT"),
        ("last(A.v, 1) > 1", "last(A.v, 1) must have one argument"),
        ("max(A.v, 1) > 1", "must have one argument"),
        ("sum(A.v + B.v) > 1", "sum(A.v + B.v) mixes columns of several variables (A, B)"),
        ("sum(A.v + v) > 1", "mixes columns of several variables (A, none)"),
        ("sum(last(A.v)) > 1", "has a function of matched rows within another"),
        ("count(X.*) > 1", "count(X.*): the pattern has no such variable"),
        ("prev(A.v) > 1", "prev(A.v): prev takes an expression of columns without a variable"),
        ("prev(v, 0) > 1", "prev(v, 0): prev takes a number of rows, 1 at least"),
        ("prev(v, v) > 1", "prev takes a number of rows"),
        ("v > 'x", "can't parse \"v > 'x\""),
        ("prev() > 1", "write prev(column) or prev(column, n)"),
        ("A.letter like 'x'", "A.letter LIKE 'x' is not supported over matched rows"),
        ("A.v in (select 1)", "is not one expression"),
    ],
)
def test_conditions_that_can_t_be(condition: Any, why: str) -> None:
    with pytest.raises(FlowError) as error:
        pattern("A B", define={"B": condition})
    assert why in str(error.value)
    assert str(error.value).startswith("match: define B")
    assert "\n" not in str(error.value)


def test_values_that_don_t_go_together() -> None:
    with pytest.raises(RunError, match="match: define B: text and a number don't go together"):
        matches("A B", "a1 b2", define={"B": "letter = A.v"})
    with pytest.raises(RunError, match="match: define B: a number is no condition"):
        matches("A B", "a1 b2", define={"B": "A.v"})


def test_a_column_that_is_no_condition() -> None:
    step = Patterns(Pattern("A", define=(("A", "v"),)))
    rows = pa.table({GROUP: pa.array([0]), TIME: pa.array([0]), "__hw_c0": pa.array([3])})
    with pytest.raises(FlowError, match="match: 'v' is no condition: it gives int64"):
        step.apply({}, rows)


def test_times_decimals_and_nan() -> None:
    """Values of other types than the random tests have."""
    made = pattern(
        "A B",
        define={
            "A": "true",
            "B": "at - A.at > interval 1 minute 30 seconds and price * 1.1 > A.price "
            "and not gap < A.gap and tags = A.tags",
        },
    )
    at = datetime(2024, 1, 1, tzinfo=UTC)
    columns = {
        "at": pa.array([at, at + timedelta(seconds=91)], pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal("1.10"), Decimal("1.01")], pa.decimal128(10, 2)),
        "gap": pa.array([1e9, float("nan")]),
        "tags": pa.array([[{"of": "x"}], [{"of": "x"}]]),
        "TRUE": pa.array([True, True]),
        "true": pa.array([True, True]),
    }
    natives = {name: columns[text] for name, text in made.native.items() if text in columns}
    natives |= {
        name: pa.array([Decimal("1.210"), Decimal("1.111")], pa.decimal128(11, 3))
        for name, text in made.native.items()
        if text == "price * 1.1"
    }
    fixed = {GROUP: pa.array([0, 0]), TIME: pa.array([0, 1]), ROW: pa.array([0, 1])}
    out, _ = Patterns(made, lists=[ROW]).apply({}, pa.table({**fixed, **natives}))
    assert out[ROW].to_pylist() == [[0, 1]]
    assert out[TIME].to_pylist() == [1]


# --- measures ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("measure", "kind", "value"),
    [
        ("first(A.v)", pa.int64(), 1),
        ("last(B.v)", pa.int64(), None),
        ("first(B.v)", pa.int64(), 3),
        ("B.v", pa.int64(), None),
        ("v", pa.int64(), 6),
        ("first(v)", pa.int64(), 1),
        ("last(letter)", pa.string(), "c"),
        ("count(*)", pa.int64(), 5),
        ("count(B.*)", pa.int64(), 2),
        ("count(B.v)", pa.int64(), 1),
        ("count(D.*)", pa.int64(), 0),
        ("sum(B.v)", pa.int64(), 3),
        ("sum(v * 2)", pa.int64(), 24),
        ("sum(D.v)", pa.int64(), None),
        ("min(A.v)", pa.int64(), 1),
        ("max(v)", pa.int64(), 6),
        ("avg(v)", pa.float64(), 3.0),
        ("last(D.v)", pa.int64(), None),
        ("collect_list(v)", pa.list_(pa.int64()), [1, 2, 3, 6]),
        ("collect_list(D.v)", pa.list_(pa.int64()), []),
        ("match_number()", pa.int64(), 1),
        ("classifier()", pa.string(), "C"),
        ("classifiers()", pa.list_(pa.string()), ["A", "A", "B", "B", "C"]),
    ],
)
def test_measures(measure: str, kind: pa.DataType, value: object) -> None:
    found = matches("A+ B+ D? C", "a1 a2 b3 | b c6", measures={"m": measure}, types={"m": kind})
    assert found == [f"1: {value}"]


@pytest.mark.parametrize(
    ("measure", "why"),
    [
        ("sum(A.v) + 1", "is no measure: write one of first, last, count"),
        ("A.v + B.v", "put what is computed from measures into a select behind"),
        ("coalesce(A.v, 0)", "'coalesce(A.v, 0)' is no measure"),
        ("1", "is no measure: write one of first, last, count"),
        ("A.*", "is no measure: write one of first, last, count"),
        ("stddev(A.v)", "'stddev(A.v)' is no measure"),
        ("prev(v)", "'prev(v)' is no measure"),
        ("match_number(1)", "match_number() takes no argument"),
        ("sum(A.v + B.v)", "mixes columns of several variables (A, B)"),
        ("sum(distinct A.v)", "without DISTINCT"),
        ("sum(", "can't parse 'sum('"),
    ],
)
def test_measures_that_can_t_be(measure: str, why: str) -> None:
    with pytest.raises(FlowError) as error:
        pattern("A B", measures={"m": measure})
    assert why in str(error.value)
    assert str(error.value).startswith("match: measure m")
