"""What users give: functions of records and of batches, SQL text, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headwater.errors import FlowError
from headwater.mapreduce.functions import NativeMap, map_step
from headwater.mapreduce.mapping import ROW_BITS, Mapper
from headwater.mapreduce.records import ROW
from headwater.mapreduce.settings import Work
from tests.mapreduce.lab import Lab, add, words


def in_pandas(frame: pd.DataFrame) -> pd.DataFrame:
    frame["word"] = frame["value"].str.split()
    if frame["value"].str.contains("boom").any():
        raise ValueError("no boom")
    return frame.explode("word").dropna(subset=["word"]).assign(n=1)


def in_arrow(batch: pa.RecordBatch) -> pa.Table:
    lists = pc.split_pattern(batch["value"], " ")
    if pc.any(pc.match_substring(batch["value"], "boom")).as_py():
        raise ValueError("no boom")
    found = {"word": lists.flatten(), "row": pc.list_parent_indices(lists)}
    table = pa.table({**found, "n": pa.array([1] * len(found["word"]), pa.int64())})
    return table.filter(pc.not_equal(table["word"], ""))


def in_table(table: pa.Table) -> pa.Table:
    """One pair for each record."""
    return pa.table({"word": table["value"], "n": pc.utf8_length(table["value"])})


def mapped(work: Work, lines: list[str]) -> tuple[list[tuple[Any, ...]], dict[int, str]]:
    """The pairs of lines with the rows they are of, and the rows that were rejected."""
    rejected: dict[int, str] = {}
    mapper = Mapper(work, 5, lambda row, reason, _: rejected.update({row: reason}))
    batch = pa.RecordBatch.from_pydict({ROW: list(range(10, 10 + len(lines))), "value": lines})
    batches = [*mapper.take(batch), *mapper.rest()]
    rows = [tuple(row.values()) for each in batches for row in each.to_pylist()]
    assert all(row[0] == 5 for row in rows)
    return [(row[1] - (5 << ROW_BITS), *row[2:]) for row in rows], rejected


LINES = ["a b", "", "boom x", "a a"]
PAIRS = [(10, "a", 1), (10, "b", 1), (13, "a", 1), (13, "a", 1)]


@pytest.mark.parametrize("function", [words, in_pandas, in_arrow])
def test_functions_of_records_and_of_batches(tmp_path: Path, function: Any) -> None:
    work = Lab(tmp_path).settings(map=function).work
    pairs, rejected = mapped(work, LINES)
    assert pairs == PAIRS
    assert list(rejected) == [12]
    assert f"{function.__name__}: ValueError: no boom" in rejected[12]


def test_one_pair_for_each_record_needs_no_row(tmp_path: Path) -> None:
    work = Lab(tmp_path).settings(map=in_table, schema="word string, n int").work
    assert mapped(work, ["a b", ""]) == ([(10, "a b", 3), (11, "", 0)], {})
    fewer = Lab(tmp_path).settings(map=_fewer).work
    assert "a column 'row' must say" in mapped(fewer, ["a b", "c"])[1][10]


def _fewer(table: pa.Table) -> pa.Table:
    return pa.table({"word": pa.array([], pa.string()), "n": pa.array([], pa.int64())})


def test_what_is_no_pair_rejects_its_record_alone(tmp_path: Path) -> None:
    def strange(line: str) -> Any:
        return {"a": [("k", 1.5)], "b": [("k", 2)], "c": 7, "d": [("k",)], "e": [(3, 3)]}[line]

    pairs, rejected = mapped(Lab(tmp_path).settings(map=strange).work, list("abcde"))
    assert pairs == [(11, "k", 2)]
    assert sorted(rejected) == [10, 12, 13, 14]


def test_a_combiner_leaves_one_pair_of_a_key(tmp_path: Path) -> None:
    work = Lab(tmp_path).settings(combine=True).work
    pairs, rejected = mapped(work, LINES)
    ids = 5 << ROW_BITS
    assert pairs == [(0, "a", 3, [ids + 10, ids + 13]), (0, "b", 1, [ids + 10])]
    assert list(rejected) == [12]


def test_sql_is_read_as_it_stands() -> None:
    found = map_step("upper(substr(value, 1, 2)) AS k, length(value) AS n WHERE value <> ', where'")
    assert found == NativeMap(
        ("upper(substr(value, 1, 2)) AS k", "length(value) AS n"), "value <> ', where'"
    )
    named = map_step("words")
    assert isinstance(named, NativeMap)
    assert named.name == "words"
    assert len(named.select) == 2


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"map": "count(*) AS n GROUP BY value"}, "group has no place in a map"),
        ({"map": "value AS k, 1 AS n FROM b JOIN c"}, "has no place in a map"),
        ({"map": "((value"}, "is no map"),
        ({"map": 3}, "neither a function nor SQL"),
        ({"reduce": lambda values: 1}, "must take a key and its values"),
        ({"reduce": "sum((n"}, "is no SQL"),
        ({"reduce": "avg(n)", "combine": True}, "not known to be associative"),
        ({"combine": "median"}, "is none of sum"),
        ({"combine": "count"}, "changes what values mean"),
        ({"reduce": "count", "combine": add}, "would have made fewer"),
        ({"schema": "n bigint"}, "has 1 columns"),
        ({"schema": "x double, n bigint"}, "can't be a key's"),
        ({"schema": "reduce string, n bigint"}, "every result has"),
        ({"result": "word string"}, "one of the key's"),
        ({"result": "a int, b int"}, "it is one"),
        ({"capture": "intervals"}, "none of eager"),
        ({"out": "no/name"}, "can't be a stream's name"),
        ({"columns": "a int"}, "a text file has lines"),
        ({"poll": 0}, "above 0"),
    ],
)
def test_what_can_t_be_is_refused_before_it_runs(
    tmp_path: Path, told: dict[str, Any], why: str
) -> None:
    with pytest.raises(FlowError if "out" not in told else Exception, match=why):
        Lab(tmp_path).settings(**told)
