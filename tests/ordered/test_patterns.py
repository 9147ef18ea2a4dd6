"""Matches of patterns: which rows they have, and when they come out."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from headwater.errors import FlowError, RunError
from headwater.names import GROUP, NUMBER, TIME
from headwater.ordered.patterns import Patterns
from tests.ordered.sequences import PLACE, ROW, Engine, matches, parse, pattern

# --- which rows -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sequence", "found"),
    [
        ("A B", "a1 b2 c3 a4 a5 b6", ["0: a1 b2", "0: a5 b6"]),
        ("A B+ C", "a1 b2 b3 c4", ["0: a1 b2 b3 c4"]),
        ("A B+ C", "a1 c2 a3 b4 c5", ["0: a3 b4 c5"]),
        ("A B* C", "a1 c2 a3 b4 c5", ["0: a1 c2", "0: a3 b4 c5"]),
        ("A B? C", "a1 b2 c3 a4 c5 a6 b7 b8 c9", ["0: a1 b2 c3", "0: a4 c5"]),
        ("A (B | C) D", "a1 b2 d3 a4 c5 d6 a7 d8", ["0: a1 b2 d3", "0: a4 c5 d6"]),
        ("(A B){2}", "a1 b2 a3 b4 a5 b6", ["0: a1 b2 a3 b4"]),
        ("A{2,3} B", "a1 a2 a3 a4 b5", ["0: a2 a3 a4 b5"]),
        ("A{2,}  B", "a1 b2 a3 a4 a5 b6", ["0: a3 a4 a5 b6"]),
        ("A B{,2} C", "a1 b2 b3 b4 c5 a6 b7 c8", ["0: a6 b7 c8"]),
        ("A+? B?", "a1 a2 b3", ["0: a1", "0: a2 b3"]),
        ("A B+?", "a1 b2 b3", ["0: a1 b2"]),
    ],
)
def test_patterns_over_letters(text: str, sequence: str, found: list[str]) -> None:
    assert matches(text, sequence) == found


def test_a_variable_without_a_condition_matches_every_row() -> None:
    assert matches("A B C", "a1 x2 c3 a4 c5", free="B") == ["0: a1 x2 c3"]


def test_greedy_takes_more_and_reluctant_less() -> None:
    """Both conditions hold for rows of 5 and more."""
    define = {"B": "v > 0", "C": "v >= 5"}
    sequence = "a0 b1 b5 b6 b2 x0"
    assert matches("A B+ C", sequence, define=define) == ["0: a0 b1 b5 b6"]
    assert matches("A B+? C", sequence, define=define) == ["0: a0 b1 b5"]


def test_the_left_option_is_preferred_even_where_it_is_shorter() -> None:
    define = {"B": "v > 0", "C": "v > 0"}
    assert matches("A (B | C C)", "a0 x1 x2", define=define) == ["0: a0 x1"]
    assert matches("A (C C | B)", "a0 x1 x2", define=define) == ["0: a0 x1 x2"]
    assert matches("A (C C | B)", "a0 x1 y0", define=define) == ["0: a0 x1"]


# --- when they come out -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sequence", "found"),
    [
        ("A B", "a1 | b2 | a3", ["1: a1 b2"]),
        # A longer match would be preferred: the end is known with the row that is no B.
        ("A B+", "a1 b2 | b3 | c4", ["2: a1 b2 b3"]),
        ("A B+", "a1 b2 | b3 |", []),
        ("A B+?", "a1 b2 | b3", ["0: a1 b2"]),
        ("A B{1,2}", "a1 b2 | b3 | b4", ["1: a1 b2 b3"]),
        ("A (B B | B)", "a1 b2 | c3", ["1: a1 b2"]),
        ("A (B | B B)", "a1 b2 | c3", ["0: a1 b2"]),
    ],
)
def test_a_match_comes_out_once_no_preferred_run_is_alive(
    text: str, sequence: str, found: list[str]
) -> None:
    assert matches(text, sequence) == found


def test_a_match_has_the_place_of_the_row_that_let_it_out() -> None:
    engine = Engine(pattern("A B+"), {})
    ((rows, _),) = parse("a1 b2 b3 c4 a5 b6 c7")
    out = engine.batch(rows, None)
    assert out[ROW].to_pylist() == [[0, 1, 2], [4, 5]]
    assert out[PLACE].to_pylist() == [3, 6]


def test_matches_of_a_key_come_out_in_the_order_of_their_first_rows() -> None:
    """The one from a2 is known with b3, but the first start is undecided until d4."""
    engine = Engine(pattern("(A A B C) | (A B)", after_match="skip to next row"), {})
    ((rows, _),) = parse("a1 a2 b3 d4")
    out = engine.batch(rows[:3], None)
    assert out.num_rows == 0
    out = engine.batch(rows[3:], None)
    assert out[ROW].to_pylist() == [[1, 2]]
    assert out[PLACE].to_pylist() == [3]


# --- where the search goes on -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("after_match", "found"),
    [
        ("skip past last row", ["0: a1 a2 b3 b4"]),
        ("skip to next row", ["0: a1 a2 b3 b4", "0: a2 b3 b4"]),
        ("skip to first A", ["0: a1 a2 b3 b4", "0: a2 b3 b4"]),
        ("skip to last A", ["0: a1 a2 b3 b4", "0: a2 b3 b4"]),
        ("skip to first B", ["0: a1 a2 b3 b4"]),
    ],
)
def test_skipping_behind_a_match(after_match: str, found: list[str]) -> None:
    assert matches("A+ B+", "a1 a2 b3 b4 c5", after_match=after_match) == found


def test_the_last_row_of_a_match_may_begin_the_next() -> None:
    define = {"A": "v > 5", "B": "v <= 5", "C": "v > 5"}
    found = matches("A B+ C", "x9 x1 x8 x2 x2 x7", define=define, after_match="skip to last C")
    assert found == ["0: x9 x1 x8", "0: x8 x2 x2 x7"]


def test_a_variable_that_was_not_matched_can_t_be_skipped_to() -> None:
    found = matches("A (B | C) D", "a1 b2 d3", after_match="skip to first C")
    assert found == ["0: a1 b2 d3"]


# --- rows between -----------------------------------------------------------------------------


def test_strict_matches_have_no_rows_between() -> None:
    assert matches("A B C", "a1 x2 b3 c4") == []


def test_rows_that_no_one_waits_for_may_be_skipped() -> None:
    sequence = "a1 x2 a3 b4 x5 a6 c7"
    assert matches("A B C", sequence, select="next") == ["0: a1 b4 c7"]


def test_a_row_that_is_awaited_is_taken() -> None:
    """b2 is awaited and taken: then only its value counts."""
    define = {"C": "letter = 'c' and v = B.v"}
    assert matches("A B C", "a0 b2 b3 c3", define=define, select="next") == []
    assert matches("A B C", "a0 b2 b3 c3 c2", define=define, select="next") == ["0: a0 b2 c2"]


def test_a_row_that_was_taken_is_not_also_skipped() -> None:
    """With b3 instead of b2 there would be a match."""
    define = {"C": "letter = 'c' and v = B.v"}
    sequence = "a0@0 b2@1 b3@2 c3@3 | w50"
    assert matches("A B C", sequence, define=define, select="next", within=9) == []
    assert matches("A B C", "a0@0 b3@2 c3@3 | w50", define=define, select="next", within=9) == [
        "0: a0 b3 c3"
    ]


def test_of_two_awaited_variables_the_row_decides() -> None:
    found = matches("A B+ C", "a1 b2 x3 b4 x5 | c6", select="next")
    assert found == ["1: a1 b2 b4 c6"]


# --- time -------------------------------------------------------------------------------------


def test_rows_beyond_the_time_are_not_in_the_match() -> None:
    sequence = "a1@0 b2@10 b3@11 c4@12"
    assert matches("A B+", sequence, within=10) == ["0: a1 b2"]
    assert matches("A B+", sequence, within=11) == ["0: a1 b2 b3"]
    assert matches("A B C", "a1@0 b2@5 c3@11", within=10) == []
    assert matches("A B", "a1@20 b2@5", within=10) == []
    assert matches("A B", "a1@20 b2@10", within=10) == ["0: a1 b2"]


def test_a_row_without_a_time_is_not_in_a_match_with_a_time() -> None:
    assert matches("A B", "a1@- b2@1 a3@1 b4@-", within=10) == []
    assert matches("A B", "a1@- b2@1 a3@1 b4@-") == ["0: a1 b2", "0: a3 b4"]


def test_the_watermark_closes_what_may_still_grow() -> None:
    """It must have passed the first row's time and the ten microseconds."""
    sequence = "a1@0 b2@5 | w9 | w10 | w11 | b3@6"
    assert matches("A B+", sequence, within=10) == ["3: a1 b2"]


def test_the_watermark_counts_after_the_rows_of_its_batch() -> None:
    assert matches("A B+", "a1@0 b2@5 | b3@6 w50", within=10) == ["1: a1 b2 b3"]


def test_the_watermark_gives_a_start_up() -> None:
    """The second a is free once the first is given up; nothing but the rows is in the way."""
    engine = Engine(pattern("A+ B", within=10), {})
    ((rows, _),) = parse("a1@0 a2@7")
    assert engine.batch(rows, 0).num_rows == 0
    assert engine.kept == 2
    assert engine.batch([], 11).num_rows == 0
    assert engine.kept == 1
    assert engine.batch([], 18).num_rows == 0
    assert engine.kept == 0


def test_a_match_that_the_watermark_let_out_has_the_place_of_its_last_row() -> None:
    engine = Engine(pattern("A B+", within=10), {})
    ((rows, _),) = parse("a1@0 b2@5")
    engine.batch(rows, None)
    assert engine.batch([], 11)[PLACE].to_pylist() == [1]


def test_skipped_rows_wait_for_the_watermark() -> None:
    sequence = "a1@0 x2@5 b3@30 | b4@8 | w11"
    assert matches("A B", sequence, within=10, select="next") == ["1: a1 b4"]
    assert matches("A B?", "a1@0 x2@5 | w11", within=10, select="next") == ["1: a1"]


def test_when_the_next_start_is_due() -> None:
    engine = Engine(pattern("A+ B", within=10), {})
    assert engine.step.due({}) is None
    ((rows, _),) = parse("a1@3 a2@7")
    _, state = engine.step.apply({}, engine.table(rows))
    assert engine.step.due(state) == 14


# --- how many runs --------------------------------------------------------------------------


def test_too_many_runs_are_an_error() -> None:
    """Every row is an A and a B, and what they sum up to is always another number."""
    define = {"A": "true", "B": "true", "C": "sum(A.v) = 1 and false"}
    sequence = " ".join(f"x{2**i}" for i in range(15))
    with pytest.raises(RunError, match="more than 10,000 ways to match the rows of one key"):
        matches("(A | B)+ C", sequence, define=define)


def test_runs_that_have_seen_other_values_are_others() -> None:
    """Each row may be an A or a B, and only one of the four ways is what C asks for."""
    define = {"A": "v > 0", "B": "v > 0", "C": "B.v = 1 and A.v = 2 and count(*) = 3"}
    assert matches("(A | B)+ C", "x1 x2 x3 x0", define=define) == ["0: x1 x2 x3"]


def test_runs_with_equal_futures_are_one() -> None:
    """Without the sum, any number of rows is fine."""
    define = {"A": "v > 0", "B": "v > 0", "C": "v = count(*)"}
    assert matches("(A | B)+ C", "x2 " * 200 + "y0", define=define) == ["0: x2 x2"] * 100


# --- the step ---------------------------------------------------------------------------------


def test_the_columns_of_a_match() -> None:
    made = pattern("A B", measures={"n": "count(*)"})
    engine = Engine(made, {"n": pa.int64()})
    rows = [
        {"letter": letter, "v": 1, "ts": ts, "key": key}
        for letter, ts, key in [("a", 5, 7), ("a", 6, 8), ("b", 4, 7), ("b", 9, 8), ("a", 10, 7)]
    ]
    out = engine.batch(rows, None)
    assert out.column_names == [GROUP, NUMBER, TIME, "key", PLACE, ROW, "n"]
    assert out.schema.field(TIME).type == pa.timestamp("us", "UTC")
    shown = out.set_column(2, TIME, out[TIME].cast(pa.int64())).to_pylist()
    assert [list(each.values()) for each in shown] == [
        [7, 0, 5, 7, 2, [0, 2], 2],
        [8, 0, 9, 8, 3, [1, 3], 2],
    ]
    again = engine.batch([{"letter": "b", "v": 1, "ts": None, "key": 7}], None)
    assert again[NUMBER].to_pylist() == [1]
    assert again[ROW].to_pylist() == [[4, 5]]
    assert again.schema == out.schema
    assert engine.batch([], None).schema == out.schema


def test_keys_with_nothing_open_keep_their_count_alone() -> None:
    engine = Engine(pattern("A B"), {})
    ((rows, _),) = parse("a1 b2 x3 x4")
    engine.batch(rows, None)
    engine.batch([{**rows[2], "key": 1}], None)
    assert engine.kept == 0
    state: dict[str, pa.Table] = {}
    _, state = engine.step.apply(state, engine.table(rows))
    assert state["keys"].select([GROUP, NUMBER]).to_pylist() == [{GROUP: 0, NUMBER: 1}]


def test_two_columns_of_one_name() -> None:
    made = pattern("A B", measures={"key": "count(*)"})
    with pytest.raises(FlowError, match="two columns are called 'key'"):
        Patterns(made, by=["key"], types={"key": pa.int64()})


def test_a_step_travels() -> None:
    engine = Engine(pattern("A B", measures={"n": "count(*)"}), {"n": pa.int64()})
    again = pickle.loads(pickle.dumps(engine.step))
    ((rows, _),) = parse("a1 b2")
    assert again.apply({}, engine.table(rows))[0] == engine.step.apply({}, engine.table(rows))[0]
