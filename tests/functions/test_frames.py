"""What a user's function takes and gives, checked; no Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import types as T

from headwater.functions.batches import batch_function
from headwater.functions.frames import Shape, given
from headwater.functions.groups import group_function, key_of

NAMES = T.StructType([T.StructField("a", T.IntegerType()), T.StructField("b", T.StringType())])
SHAPE = Shape(NAMES, "Europe/Berlin", "map 'map-1'")
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
ROWS = pa.array(
    [{"v": 1, "ts": NOON}, {"v": None, "ts": None}],
    pa.struct([("v", pa.int32()), ("ts", pa.timestamp("us", "Europe/Berlin"))]),
)


def test_what_functions_take() -> None:
    frame = given(ROWS, "pandas")
    assert frame["ts"].tolist() == [pd.Timestamp("2024-05-01 14:00"), pd.NaT]
    assert frame["v"].isna().tolist() == [False, True]
    assert given(ROWS, "batch").equals(pa.RecordBatch.from_struct_array(ROWS))
    assert given(ROWS, "table").column_names == ["v", "ts"]


@pytest.mark.parametrize(
    "made",
    [
        pd.DataFrame({"b": ["x", None], "a": [1.0, None]}, index=[7, 3]),
        pa.table({"a": pa.array([1, None], pa.int64()), "b": ["x", None]}),
        pa.record_batch({"b": ["x", None], "a": pa.array([1, None], pa.int8())}),
        {"a": np.array([1.0, np.nan]), "b": ["x", None]},
        {"a": pd.array([1, None], dtype="Int64"), "b": pa.array(["x", None])},
    ],
    ids=["pandas", "table", "batch", "numpy", "mixed"],
)
def test_what_functions_may_give(made: Any) -> None:
    assert SHAPE.array(made, 2).to_pylist() == [{"a": 1, "b": "x"}, {"a": None, "b": None}]


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ({"a": [1], "b": ["x"]}, "the function gave 1 rows for 2; it must give one for each"),
        ({"a": [1, 2]}, r"the function gave no columns \['b'\]"),
        (
            {"a": [1, 2], "b": ["x", "y"], "c": [0, 0]},
            r"the function gave columns \['c'\], which its",
        ),
        ({"a": ["one", "two"], "b": ["x", "y"]}, "column 'a' is not int: it is string"),
        ({"a": [1.5, 2.0], "b": ["x", "y"]}, "column 'a' is not int"),
        ({"a": [2**40, 2], "b": ["x", "y"]}, "column 'a' is not int"),
        ({"a": np.array([1.5, 2.0]), "b": ["x", "y"]}, "column 'a' is not int"),
        ({"a": pa.array(["1", "2"]), "b": ["x", "y"]}, "column 'a' is not int: it is string"),
        ({"a": [1, 2], "b": pa.array([1, 2])}, "column 'b' is not string: it is int64"),
        ({"a": 5, "b": ["x", "y"]}, "column 'a' is a int, not a sequence"),
        (None, "the function gave a NoneType, not a DataFrame"),
        (
            pd.DataFrame([[1, 2]] * 2, columns=["a", "a"]),
            "the function gave two columns of one name",
        ),
    ],
)
def test_what_they_may_not(made: Any, says: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^map 'map-1': {says}"):
        SHAPE.array(made, 2)


def test_nulls_where_the_schema_bars_them() -> None:
    shape = Shape(T.StructType([T.StructField("a", T.IntegerType(), False)]), "UTC", "map 'm'")
    with pytest.raises(ValueError, match="map 'm': column 'a' has nulls, which its schema bars"):
        shape.array({"a": [1, None]}, 2)


@pytest.mark.parametrize(
    "times",
    [
        pd.Series([pd.Timestamp("2024-05-01 14:00"), None]),
        pd.Series([pd.Timestamp("2024-05-01 12:00", tz="UTC"), None]),
        pd.Series([datetime(2024, 5, 1, 14), None], dtype=object),
        pa.array([datetime(2024, 5, 1, 14), None], pa.timestamp("s")),
        pa.array([NOON, None], pa.timestamp("ms", "UTC")),
        ["2024-05-01T14:00", None],
    ],
)
def test_times_without_a_zone_are_of_the_session(times: Any) -> None:
    shape = Shape(T.StructType([T.StructField("t", T.TimestampType())]), "Europe/Berlin", "map")
    assert shape.array({"t": times}, 2).to_pylist() == [{"t": NOON}, {"t": None}]


def test_numbers_are_no_times() -> None:
    shape = Shape(T.StructType([T.StructField("t", T.TimestampType())]), "UTC", "map 'm'")
    with pytest.raises(TypeError, match="map 'm': column 't' is not timestamp"):
        shape.array({"t": [1, 2]}, 2)


def test_a_function_of_batches() -> None:
    def twice(batch: pa.RecordBatch) -> dict[str, Any]:
        return {"a": pc.multiply(batch["v"], 2), "b": ["x"] * batch.num_rows}

    apply = batch_function(twice, "batch", SHAPE)
    assert apply(ROWS).to_pylist() == [{"a": 2, "b": "x"}, {"a": None, "b": "x"}]


# --- groups -----------------------------------------------------------------------------------

MADE = T.StructType(
    [T.StructField("n", T.IntegerType()), T.StructField("at", T.ArrayType(T.IntegerType()))]
)
GROUPS = pa.array([[{"v": 1}, {"v": 2}], [{"v": 3}]], pa.list_(pa.struct([("v", pa.int32())])))
KEYS = pa.array([{"k": 7}, {"k": 8}])
WHERE = Shape(MADE, "UTC", "applyInPandas 'g'")


def test_a_function_of_groups_makes_any_number_of_rows() -> None:
    def each(key: tuple[int], rows: pd.DataFrame) -> pd.DataFrame:
        if key == (8,):
            return pd.DataFrame({"n": [], "at": []})
        return pd.DataFrame({"n": rows["v"] * key[0], "at": [[0], [0, 1]]})

    apply = group_function(each, WHERE, with_key=True, contributing="at")
    found = apply(KEYS, GROUPS).to_pylist()
    assert found == [[{"n": 7, "at": [0]}, {"n": 14, "at": [0, 1]}], []]
    assert apply(KEYS.slice(0, 0), GROUPS.slice(0, 0)).to_pylist() == []


@pytest.mark.parametrize(
    ("positions", "says"),
    [
        ([0, 2], "position 2 in 'at' is none of the group's 2 rows"),
        ([-1], "position -1 in 'at' is none of the group's 2 rows"),
        ([None], "position null in 'at' is none of the group's 2 rows"),
        (None, "'at' is null; an empty list says that no row counts"),
    ],
)
def test_positions_that_are_no_rows_name_step_and_group(positions: Any, says: str) -> None:
    def wrong(rows: pd.DataFrame) -> dict[str, Any]:
        return {"n": [1], "at": [positions]}

    forgiving = group_function(wrong, WHERE, with_key=False, contributing="at", forgiving=True)
    assert forgiving(KEYS, GROUPS).to_pylist() == [[], []]
    apply = group_function(wrong, WHERE, with_key=False, contributing="at")
    with pytest.raises(ValueError, match=r"^applyInPandas 'g', group \(7,\): " + says):
        apply(KEYS, GROUPS)


def test_a_window_in_a_key_is_a_dict_of_times_without_a_zone() -> None:
    key = pa.scalar({"k": 1, "window": {"start": NOON, "end": NOON}, "at": NOON})
    local = pd.Timestamp("2024-05-01 14:00")
    assert key_of(key, "Europe/Berlin") == (1, {"start": local, "end": local}, local)
