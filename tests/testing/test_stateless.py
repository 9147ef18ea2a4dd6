"""Stateless steps: their columns and values, and the provenance that passes through."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql.types import IntegerType, StructField, StructType

from headwater.flow import nodes
from headwater.flow.terms import Call, Cast, Literal, Opaque, Term
from headwater.testing import InterpreterError
from headwater.testing.evaluate import evaluate, interval
from headwater.testing.rows import Column, Row, Schema
from tests.testing.tables import call, col, expr, lit, named, run, source, table

DATA = """
    0 a 1 1 0 5
    0 a 2 2 - -
"""


def value(term: Term, **columns: Any) -> Any:
    schema = Schema(tuple(Column(name) for name in columns))
    return evaluate(term, schema, Row(tuple(columns.values()), None, frozenset()))


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (call("and", col("yes"), col("unknown")), None),
        (call("and", col("no"), col("unknown")), False),
        (call("or", col("yes"), col("unknown")), True),
        (call("or", col("no"), col("unknown")), None),
        (call("not", col("unknown")), None),
        (call("=", col("unknown"), col("unknown")), None),
        (call("<=>", col("unknown"), col("unknown")), True),
        (call("in", lit(1), lit(2), col("unknown")), None),
        (call("in", lit(1), lit(1), col("unknown")), True),
        (call("coalesce", col("unknown"), lit(3)), 3),
        (call("+", lit(1), col("unknown")), None),
        (call("%", lit(-5), lit(3)), -2),
        (call("/", lit(3), lit(2)), 1.5),
        (call("greatest", lit(1), col("unknown"), lit(2)), 2),
        (call("case", col("unknown"), lit(1), col("yes"), lit(2), lit(3)), 2),
        (call("between", lit(2), lit(1), lit(2)), True),
        (call("like", Literal("abc", "string"), Literal("a_%", "string")), True),
        (Cast(lit(7), "string"), "7"),
        (call("concat", Literal("a", "string"), col("unknown")), None),
    ],
    ids=lambda v: v.text() if isinstance(v, Term) else repr(v),
)
def test_three_valued_logic_and_functions(term: Term, expected: Any) -> None:
    found = value(term, yes=True, no=False, unknown=None)
    assert (found, type(found)) == (expected, type(expected))


def test_what_is_not_known_is_named() -> None:
    with pytest.raises(InterpreterError, match="does not know the function soundex"):
        value(Call("soundex", (lit(1),)))
    with pytest.raises(InterpreterError, match="can't evaluate python:f"):
        value(Opaque("python:f"))
    with pytest.raises(InterpreterError, match="no column speed among k"):
        value(col("speed"), k=1)


def test_intervals() -> None:
    assert interval("1 minute 30 seconds") == timedelta(seconds=90)
    with pytest.raises(InterpreterError, match="parsec"):
        interval("2 parsecs")


def test_a_filter_keeps_what_is_true_not_what_is_unknown() -> None:
    step = nodes.Filter(step="f", inputs=(source(),), condition=expr(call("<", col("v"), lit(9))))
    assert run(step, DATA, [0]) == table("0: 1 1 0 5 @1 {a1}")


def test_columns_are_replaced_added_renamed_and_dropped() -> None:
    more = nodes.WithColumns(
        step="w",
        inputs=(source(),),
        columns=(("k", expr(lit(9))), ("twice", expr(call("*", col("v"), lit(2))))),
    )
    renamed = nodes.Rename(step="r", inputs=(more,), names=(("ts", "time"),))
    fewer = nodes.Drop(step="d", inputs=(renamed,), columns=(expr(col("v")),))
    assert run(fewer, DATA, [0]) == table("""
        0: 1 1 9 10 @1 {a1}
        0: 2 2 9 - @2 {a2}
    """)


def test_the_outer_explode_keeps_rows_without_elements() -> None:
    array = nodes.WithColumns(
        step="w",
        inputs=(source(),),
        columns=(
            (
                "xs",
                expr(call("case", call("=", col("v"), lit(5)), call("array", lit(7), lit(8)))),
            ),
        ),
    )

    def exploded(function: Any, *names: str) -> nodes.Node:
        columns = (expr(col("id")), expr(named(call(function, col("xs")), names[0])))
        return nodes.Explode(
            step="e", inputs=(array,), columns=columns, at=1, function=function, names=names
        )

    assert run(exploded("explode", "x"), DATA, [0]) == table("""
        0: 1 7 @1 {a1}
        0: 1 8 @1 {a1}
    """)
    assert run(exploded("posexplode_outer", "at", "x"), DATA, [0]) == table("""
        0: 1 0 7 @1 {a1}
        0: 1 1 8 @1 {a1}
        0: 2 - - @2 {a2}
    """)


def test_a_function_makes_many_rows_of_one() -> None:
    step = nodes.FlatMap(
        step="m",
        inputs=(source(),),
        function=lambda row: [(i,) for i in range(2)] if row.v == 5 else [],
        schema=StructType([StructField("i", IntegerType())]),
        keep=("id",),
    )
    assert run(step, DATA, [0]) == table("""
        0: 1 0 @1 {a1}
        0: 1 1 @1 {a1}
    """)


def test_a_union_takes_the_names_of_the_first() -> None:
    both = nodes.Union(step="u", inputs=(source("a"), source("b")))
    assert run(both, "0 a 1 1 0 5\n0 b 1 2 1 6", [0]) == table("""
        0: 1 1 0 5 @1 {a1}
        0: 1 2 1 6 @2 {b1}
    """)
    missing = nodes.Union(
        step="u",
        inputs=(source("a"), source("b", columns="id ts v w")),
        by_name=True,
        allow_missing=True,
    )
    assert run(missing, "0 a 1 1 0 5\n0 b 1 2 6 7", [0]) == table("""
        0: 1 1 0 5 - @1 {a1}
        0: 1 2 - 6 7 @2 {b1}
    """)
