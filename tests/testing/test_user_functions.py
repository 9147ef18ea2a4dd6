"""The interpreter's own rules for users' functions and concise aggregates, worked by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from pyspark.sql.types import ArrayType, IntegerType, StructField, StructType

from headwater.flow import nodes
from headwater.testing import InterpreterError
from tests.testing.tables import (
    aggregate,
    call,
    col,
    expr,
    named,
    run,
    session,
    source,
    table,
    window,
)

DATA = """
    0 a 1 1 0 5
    0 a 2 2 0 7
    0 a 3 3 1 -
    1 a 4 4 0 7
    1 a 5 25 0 1
"""
INT = IntegerType()


def ints(*names: str) -> StructType:
    return StructType([StructField(name, INT) for name in names])


def test_a_map_makes_one_row_of_each() -> None:
    a = source()
    step = nodes.Map(
        step="m",
        inputs=(a,),
        function=lambda rows: pd.DataFrame({"sum": rows["v"] + rows["k"]}),
        schema=ints("sum"),
        given=a.schema,
        keep=("id",),
    )
    assert run(step, DATA, [0, 0])[:3] == table("""
        0: 1 5 @1 {a1}
        0: 2 7 @2 {a2}
        0: 3 - @3 {a3}
    """)


def called(target: Any, retries: int = 1) -> nodes.Service:
    return nodes.Service(
        step="s",
        inputs=(source(),),
        target=target,
        request=(("v", expr(col("v"))),),
        response=ints("x"),
        column="said",
        retries=retries,
    )


def test_a_service_answers_or_says_why_not() -> None:
    def answer(event: dict[str, Any]) -> Any:
        if event["v"] is None:
            raise ValueError("nothing")
        return {"x": event["v"] * 2} if event["v"] < 7 else "garbage"

    said = nodes.Project(
        step="p",
        inputs=(called(answer),),
        columns=(
            expr(col("id")),
            expr(col("said.answer.x")),
            expr(col("said.reason")),
            expr(col("said.attempts")),
        ),
    )
    assert run(said, DATA, [0, 0])[:3] == table("""
        0: 1 10 - 1 @1 {a1}
        0: 2 - the answer is 'garbage', not an object 1 @2 {a2}
        0: 3 - ValueError: nothing 2 @3 {a3}
    """)
    with pytest.raises(InterpreterError, match="s: the reference interpreter calls no URLs"):
        run(called("http://x/"), DATA, [0, 0])


def grouped(over: Any, contributing: str | None, function: Any) -> nodes.GroupFunction:
    a = source()
    plain = aggregate(a, "k", over=over)
    schema = ints("n")
    if contributing:
        schema = StructType([*schema.fields, StructField(contributing, ArrayType(INT))])
    return nodes.GroupFunction(
        step="g",
        inputs=plain.inputs,
        keys=plain.keys,
        window=plain.window,
        function=function,
        schema=schema,
        given=a.schema,
        with_key=True,
        contributing=contributing,
        keep=("k",),
    )


def test_a_group_function_makes_rows_of_complete_groups() -> None:
    def each(key: Any, rows: pd.DataFrame) -> pd.DataFrame:
        assert set(key[1]) == {"start", "end"}
        return pd.DataFrame({"n": [key[0], len(rows)]})

    step = grouped(window("ts", 10), None, each)
    assert run(step, DATA, [0, 5, 25]) == table("""
        2: 0 0 @9.999999 {a1 a2 a4}
        2: 0 3 @9.999999 {a1 a2 a4}
        2: 1 1 @9.999999 {a3}
        2: 1 1 @9.999999 {a3}
    """)


def test_positions_say_which_rows_count() -> None:
    def greatest(_: Any, rows: pd.DataFrame) -> dict[str, Any]:
        best = rows["v"].max()
        return {"n": [best], "of": [[i for i, v in enumerate(rows["v"]) if v == best]]}

    step = grouped(session("ts", 5), "of", greatest)
    assert run(step, DATA, [0, 0, 25]) == table("""
        2: 0 7 @8.999999 {a2 a4}
        2: 1 - @7.999999 {}
    """)


def test_concise_extremes_come_from_the_deciding_rows() -> None:
    a = source()
    columns = (named(call("max", col("v")), "hi"),)
    step = replace(aggregate(a, "k", over=window("ts", 10), columns=columns), concise=True)
    assert run(step, DATA, [0, 5, 25]) == table("""
        2: 0 0-10 7 @9.999999 {a2 a4}
        2: 1 0-10 - @9.999999 {a3}
    """)
