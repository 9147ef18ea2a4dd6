"""Answers as their schema says, or the reason why not; no Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from pyspark.sql import Row
from pyspark.sql import types as T

from headwater.service.answers import conformed
from headwater.service.calls import Final

SCHEMA = T.StructType(
    [
        T.StructField("score", T.DoubleType()),
        T.StructField("rank", T.ByteType(), nullable=False),
    ]
)


@pytest.mark.parametrize(
    "answer",
    [
        {"score": 1, "rank": 2, "more": "passed over"},
        {"score": np.float64(1.0), "rank": np.int64(2)},
        Row(rank=2, score=1.0),
        (1.0, 2),
        [1, 2],
    ],
)
def test_objects_rows_and_tuples_are_answers(answer: Any) -> None:
    assert conformed(answer, SCHEMA, "UTC") == {"score": 1.0, "rank": 2}


def test_a_missing_field_is_null_where_that_is_allowed() -> None:
    assert conformed({"rank": 2}, SCHEMA, "UTC") == {"score": None, "rank": 2}
    with pytest.raises(Final, match="the answer has no 'rank'"):
        conformed({"score": 1.0}, SCHEMA, "UTC")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "the answer is None, not an object"),
        ("text", "the answer is 'text', not an object"),
        (7, "the answer is 7, not an object"),
        ((1.0, 2, 3), "the answer has 3 values, not 2"),
        ({"score": "high", "rank": 2}, "the answer's 'score' is 'high', not double"),
        ({"score": True, "rank": 2}, "the answer's 'score' is True, not double"),
        ({"score": 1.0, "rank": 300}, "the answer's 'rank' is 300, not tinyint"),
        ({"score": 1.0, "rank": 2.5}, "the answer's 'rank' is 2.5, not tinyint"),
        ({"score": 1.0, "rank": [2]}, "the answer's 'rank' is .2., not tinyint"),
    ],
)
def test_what_is_no_answer_says_why(answer: Any, says: str) -> None:
    with pytest.raises(Final, match=says):
        conformed(answer, SCHEMA, "UTC")


@pytest.mark.parametrize(
    ("kind", "given", "found"),
    [
        (T.TimestampType(), "2024-05-01T12:00:00+00:00", datetime(2024, 5, 1, 12, tzinfo=UTC)),
        (T.TimestampType(), "2024-05-01T14:00:00", datetime(2024, 5, 1, 12, tzinfo=UTC)),
        (T.DateType(), "2024-05-01", date(2024, 5, 1)),
        (T.DecimalType(6, 2), "1.239", Decimal("1.24")),
        (T.BinaryType(), "aGk=", b"hi"),
        (T.StringType(), "x", "x"),
        (T.BooleanType(), False, False),
        (T.ArrayType(T.IntegerType()), [1, None], [1, None]),
        (T.MapType(T.StringType(), T.DoubleType()), {"a": 1}, [("a", 1.0)]),
        (SCHEMA, {"rank": 1}, {"score": None, "rank": 1}),
    ],
)
def test_values_of_every_kind(kind: T.DataType, given: Any, found: Any) -> None:
    schema = T.StructType([T.StructField("x", kind)])
    assert conformed({"x": given}, schema, "Europe/Berlin") == {"x": found}


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (T.TimestampType(), "yesterday"),
        (T.TimestampType(), 5),
        (T.DateType(), datetime(2024, 5, 1)),
        (T.BinaryType(), "not base64!"),
        (T.DecimalType(6, 2), "much"),
        (T.ArrayType(T.IntegerType()), "12"),
        (T.ArrayType(T.IntegerType()), ["a"]),
        (T.MapType(T.StringType(), T.DoubleType()), [1]),
        (SCHEMA, {"score": 1}),
        (T.StringType(), 5),
    ],
)
def test_values_that_do_not_fit(kind: T.DataType, given: Any) -> None:
    schema = T.StructType([T.StructField("x", kind)])
    with pytest.raises(Final, match="the answer"):
        conformed({"x": given}, schema, "UTC")
