"""Pattern texts become trees and automata; what can't be a pattern is refused in one line."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
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
    variables,
)
from tests.support import amount

A, B, C = Variable("A"), Variable("B"), Variable("C")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("A", A),
        ("up_1 Down", Series((Variable("up_1"), Variable("Down")))),
        ("A B|C", Choice((Series((A, B)), C))),
        ("A (B|C)", Series((A, Choice((B, C))))),
        ("((A))", A),
        ("A+", Repeat(A, 1, None)),
        ("A B*", Series((A, Repeat(B, 0, None)))),
        ("A B?", Series((A, Repeat(B, 0, 1)))),
        ("A B??", Series((A, Repeat(B, 0, 1, greedy=False)))),
        ("A+?", Repeat(A, 1, None, greedy=False)),
        ("A{3}", Repeat(A, 3, 3)),
        ("A{3,}", Repeat(A, 3, None)),
        ("A B{,3}", Series((A, Repeat(B, 0, 3)))),
        ("A{2, 3}?", Repeat(A, 2, 3, greedy=False)),
        ("(A B)+ C", Series((Repeat(Series((A, B)), 1, None), C))),
        ("(A+)?B", Series((Repeat(Repeat(A, 1, None), 0, 1), B))),
    ],
)
def test_texts_and_their_trees(text: str, tree: Tree) -> None:
    assert parse(text) == tree
    assert parse(str(tree)) == tree


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the pattern is empty"),
        ("  ", "the pattern is empty"),
        ("A*", "'A*' can match no rows at all"),
        ("A?", "can match no rows"),
        ("A* B?", "can match no rows"),
        ("A | B*", "can match no rows"),
        ("A{,2}", "can match no rows"),
        ("A B{0}", "'A B{0}': {0} matches no rows; leave the part out, at character 4"),
        ("A{,0}", "{,0} matches no rows"),
        ("A{3,2}", "{3,2} has its bounds the wrong way round, at character 2"),
        ("A{}", "{} is no quantifier"),
        ("A{,}", "{,} is no quantifier"),
        ("A{x}", "{x} is no quantifier"),
        ("A{2", "a { without its }, at character 2"),
        ("(A B", "a ( without its ), at character 1"),
        ("A B)", "a ) without its (, at character 4"),
        ("A ()", "a variable or a group is missing, at character 4"),
        ("A |", "a variable or a group is missing, at character 4"),
        ("| A", "a variable or a group is missing, at character 1"),
        ("+ A", "nothing to repeat before +, at character 1"),
        ("A+*", "a quantifier behind a quantifier; put the inner one into ( ), at character 3"),
        ("A 3", "'3' is no variable, at character 3"),
        ("A, B", "',' is no variable, at character 2"),
        ("^ A", "the anchor ^ is not supported: a stream has no first row to wait for, at"),
        ("A $", "the anchor $ is not supported"),
        ("PERMUTE(A, B)", "PERMUTE is not supported; write the orders as options (A B | B A)"),
        ("A {- B -} C", "exclusions {- … -} are not supported, at character 3"),
        ("(" * 51 + "A" + ")" * 51, "nested more than 50 deep"),
        (None, "the pattern is a text such as 'A B+', not NoneType"),
    ],
)
def test_texts_that_are_no_patterns(text: str, why: str) -> None:
    with pytest.raises(FlowError) as error:
        parse(text)
    assert why in str(error.value)
    assert "\n" not in str(error.value)


def test_a_definition_of_a_variable_that_the_pattern_lacks() -> None:
    with pytest.raises(FlowError, match="define has 'C', which pattern 'A B' lacks; .* A, B"):
        parse("A B", ["A", "C"])


def test_variables_come_in_the_order_of_the_text() -> None:
    assert variables(parse("B (A | B) C A")) == ("B", "A", "C")


# --- automata ---------------------------------------------------------------------------------


def follow(text: str) -> list[str]:
    """What may follow each position, then what may come first: letters, `.` for the end."""
    automaton = compiled(parse(text))
    names = [automaton.variables[s] for s in automaton.symbols]
    shown = ["".join("." if p == ACCEPT else names[p] for p in each) for each in automaton.follow]
    assert "".join(names) == "".join(c for c in text if c.isalpha()) or "{" in text
    return shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("A B", ["B", ".", "A"]),
        ("A | B", [".", ".", "AB"]),
        ("A B?", ["B.", ".", "A"]),
        ("A B??", [".", ".", "A"]),
        ("A B* C", ["BC", "BC", ".", "A"]),
        ("A B*? C", ["CB", "CB", ".", "A"]),
        ("A+", ["A.", "A"]),
        ("A+?", [".", "A"]),
        ("A{2,3}", ["A", "A.", ".", "A"]),
        ("(A B)+ C", ["B", "AC", ".", "A"]),
        ("A (B? C?)* D", ["BCD", "CBD", "BCD", ".", "A"]),
        # A round that no one needs must have a row: the empty one is passed over, not preferred.
        ("A (B??)? C", ["BC", "C", ".", "A"]),
        ("A (B?){2} C", ["BBC", "BC", "C", ".", "A"]),
        ("A (B*)* C", ["BC", "BC", ".", "A"]),
    ],
)
def test_what_may_follow(text: str, shown: list[str]) -> None:
    assert follow(text) == shown


def test_a_pattern_may_not_be_too_large() -> None:
    assert len(compiled(parse("(A{10}){100}")).symbols) == 1_000
    with pytest.raises(FlowError, match="more than 1,000 places for rows once"):
        compiled(parse("A{1001}"))
    with pytest.raises(FlowError, match="more than 1,000 places"):
        compiled(parse("((A{1000}){1000}){1000}"))


TREES = st.recursive(
    st.sampled_from([A, B, C]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: Series(tuple(parts))),
        st.lists(inner, min_size=2, max_size=3).map(lambda options: Choice(tuple(options))),
        st.builds(
            Repeat,
            inner,
            st.integers(0, 2),
            st.none() | st.integers(2, 3),
            st.booleans(),
        ),
    ),
    max_leaves=6,
)


@settings(deadline=None, max_examples=amount(50, 500))
@given(TREES)
def test_a_tree_is_what_its_text_says(tree: Tree) -> None:
    if not nullable(tree):
        text = str(tree)
        assert str(parse(text)) == text
        assert compiled(parse(text)) == compiled(tree)


# --- patterns with their conditions -----------------------------------------------------------


@pytest.mark.parametrize("text", ["A B*", "A B+", "A+", "A B* C", "A (B | C)*", "A (C | B*)"])
def test_a_repetition_without_a_condition_never_ends(text: str) -> None:
    """B and A have no condition, C has one."""
    define = (("C", "v > 1"),) if "C" in text else ()
    with pytest.raises(FlowError, match="never comes to an end: . has no condition and repeats"):
        Pattern(text, define=define)
    Pattern(text, define=define, within=10)


@pytest.mark.parametrize("text", ["A B*?", "A B+?", "A B{,3}", "A (B C)+", "A B*? C", "A B? C"])
def test_these_do_end(text: str) -> None:
    Pattern(text, define=(("C", "v > 1"),) if "C" in text else ())


@pytest.mark.parametrize("text", ["A B*", "A B?", "A (B C)?", "A+"])
def test_an_optional_end_never_ends_where_rows_are_skipped(text: str) -> None:
    define = tuple((name, "v > 1") for name in variables(parse(text)))
    Pattern(text, define=define)
    Pattern(text, define=define, select="next", within=10)
    with pytest.raises(FlowError, match="its end is optional, and with select='next' a match"):
        Pattern(text, define=define, select="next")


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"within": -1}, "within is a number of microseconds, not -1"),
        ({"within": "1 s"}, "within is a number of microseconds, not '1 s'"),
        ({"select": "any"}, "select='any' is neither 'strict' nor 'next'"),
        ({"after_match": "stop"}, "after_match='stop': write 'skip past last row', 'skip to next"),
        ({"after_match": "skip to first X"}, "has no variable 'X'; it has A, B"),
        ({"after_match": "skip to A"}, "write 'skip past last row'"),
    ],
)
def test_wrong_parameters(parameters: dict[str, object], why: str) -> None:
    with pytest.raises(FlowError) as error:
        Pattern("A B", **parameters)  # type: ignore[arg-type]
    assert why in str(error.value)


def test_the_words_of_sql_may_be_in_capitals() -> None:
    assert Pattern("A B", after_match="AFTER MATCH SKIP TO LAST B").skip.variable == "B"


def test_a_pattern_travels() -> None:
    made = Pattern("A B+", define=(("B", "v > prev(v, 2)"),), measures=(("n", "count(*)"),))
    again = pickle.loads(pickle.dumps(made))
    assert again == made
    assert again.native == made.native == {"__hw_c0": "v"}
    assert again.conditions.back == 2
