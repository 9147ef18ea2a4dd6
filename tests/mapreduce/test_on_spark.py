"""Map and reduce on Spark: every kind of function gives the same, with the same records behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater.errors import FlowError, StoreError
from headwater.mapreduce import asking
from headwater.mapreduce.jobs import Jobs
from headwater.mapreduce.mapping import ROW_BITS
from headwater.mapreduce.running import mapreduce
from headwater.mapreduce.windows import length
from headwater.query import Store
from headwater.store.reader import StoreReader
from tests.mapreduce.lab import Lab, add, expected, lines_of, sliding, words

pytestmark = pytest.mark.spark

TEXTS = ["a b a\nboom\n\nc", "b b\n", "", "d a\nc c c\n"]


@pytest.fixture
def small(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark for a few rows."""
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    yield spark
    spark.conf.unset("spark.sql.adaptive.enabled")


def in_pandas(frame: pd.DataFrame) -> pd.DataFrame:
    found = frame.assign(word=frame["value"].str.split(), n=1).explode("word")
    return found.dropna(subset=["word"])


SQL = "explode(filter(split(value, ' '), w -> w <> '')) AS w, 1 AS one WHERE value <> 'boom'"


@pytest.mark.parametrize(
    ("map", "combine", "reduce", "capture"),
    [
        pytest.param(SQL, None, "sum", "eager", id="sql, sum"),
        pytest.param(SQL, add, add, "eager", id="sql, function combines"),
        pytest.param(SQL, False, "count", "eager", id="sql, not combined"),
        pytest.param(words, "sum", add, "none", id="function, sum combines"),
        pytest.param(words, True, add, "none", id="function combines in its task"),
        pytest.param(in_pandas, None, "count", "eager", id="pandas, count"),
        pytest.param(words, False, add, "eager", id="function, not combined"),
    ],
)
def test_jobs_of_every_kind(
    small: SparkSession, tmp_path: Path, map: Any, combine: Any, reduce: Any, capture: str
) -> None:
    lab = Lab(tmp_path)
    texts = [text if map is not in_pandas else text.replace("boom", "") for text in TEXTS]
    files = {n: lab.put(f"f{n}", text) for n, text in enumerate(texts)}
    settings = lab.settings(map=map, combine=combine, reduce=reduce, capture=capture)
    jobs = Jobs(small, settings.work, "counts")
    outputs = {n: tmp_path / "maps" / f"{n:08d}" for n in files}
    (tmp_path / "maps").mkdir()
    mapped = jobs.map(files, outputs)
    assert [each.records for each in mapped.values()] == [4, 1, 0, 2]
    rejected = [(letter["row"], letter["event"]) for letter in mapped[0].letters]
    assert rejected == ([(1, "boom")] if map is words else [])
    reduced = jobs.reduce(3, [outputs[n] for n in (0, 1, 3)])
    counts, origins = expected([(f"f{n}", lines_of(t)) for n, t in enumerate(texts)], [[0, 1, 3]])
    words_, numbers = (reduced.rows[name].to_pylist() for name in ("word", "n"))
    assert dict(zip(words_, numbers, strict=True)) == counts[0]
    if capture == "eager":
        assert reduced.sets is not None
        found = zip(words_, reduced.sets.to_pylist(), strict=True)
        sets = {w: {(f"f{i >> ROW_BITS}", i & 0xFFFFFFFF) for i in ids} for w, ids in found}
        assert sets == origins[0]
    assert len(set(reduced.rows["__hw_id"].to_pylist())) == len(counts[0])
    assert jobs.reduce(4, []).rows.num_rows == 0
    assert set((tmp_path / "maps").iterdir()) == {*outputs.values()}


def test_a_file_that_sql_can_t_map_is_put_aside_alone(small: SparkSession, tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    files = {0: lab.put("a", "1\n2\n"), 1: lab.put("b", "three\n"), 2: lab.put("c", "4\n")}
    work = lab.settings(map="'all' AS word, CAST(value AS INT) AS n", reduce="max").work
    mapped = Jobs(small, work, "counts").map(files, {n: tmp_path / f"{n:08d}" for n in files})
    assert "CAST_INVALID_INPUT" in mapped[1].reason
    assert not mapped[0].reason
    assert not mapped[2].reason
    for wrong in ({"map": "nothing AS word, 1 AS n"}, {"reduce": "avg(m)"}, {"map": "value AS w"}):
        with pytest.raises(FlowError):
            Jobs(small, lab.settings(**wrong).work, "counts").check()


def test_a_whole_run_with_its_provenance(small: SparkSession, tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    for n, text in enumerate(TEXTS):
        lab.put(f"f{n}.txt", text.replace("boom", ""), n)
    lab.put("other.csv", "x", 9)
    run = mapreduce(
        lab.input,
        map="words",
        reduce="sum",
        window=length(2),
        store=lab.store,
        streams=lab.streams,
        out="counts",
        pattern="*.txt",
        once=True,
    )
    run.wait()
    files = [(f"f{n}.txt", lines_of(text.replace("boom", ""))) for n, text in enumerate(TEXTS)]
    counts, origins = expected(files, sliding(4, 2))
    assert lab.published() == counts
    assert lab.origins() == origins
    with hw.open(lab.store) as store:
        forward = store.forward("lines", ("f1.txt", 0)).to_pylist()
        assert {(r["reduce"], r["word"], r["n"]) for r in forward} == {(1, "b", 3), (2, "b", 2)}
        [mine] = store.results("counts", where="reduce = 1 AND word = 'c'").to_pylist()
        [line] = store.backward("counts", mine["result_id"]).to_pylist()
        assert (line["file"], line["row"], line["value"]) == ("f0.txt", 3, "c")


def test_records_are_found_by_mapping_again(small: SparkSession, tmp_path: Path) -> None:
    """`capture="ancestors"`, of records with two columns in their key."""
    lab = Lab(tmp_path)
    lab.put("a.csv", "city,kind,n\nx,1,4\ny,1,6\nx,,8\n", 0)
    lab.put("b.csv", "city,kind,n\nx,1,2\nx,2,0\n", 1)
    told: dict[str, Any] = {
        "map": "city, kind, n WHERE n > 0",
        "reduce": "avg(n)",
        "schema": "city string, kind int, n bigint",
        "result": "mean double",
        "format": "csv",
        "columns": "city string, kind int, n bigint",
        "capture": "ancestors",
        "window": length(2),
        "settle": 0,
    }
    lab.run(lambda made: Jobs(small, made.work, made.out), **told)
    reader = StoreReader(lab.store)
    with Store(reader) as store:
        catalog = store._catalog
        [source], [sink] = catalog.sources, catalog.sinks
        asked = asking.Asked(reader.query, sink, source)
        rows = store.results("counts").to_pylist()
        ids = {(r["reduce"], r["city"], r["kind"]): r["result_id"] for r in rows}
        assert {key: r["mean"] for key, r in zip(ids, rows, strict=True)}[1, "x", 1] == 3.0
        edges = asked.edges(np.array(list(ids.values()))).to_pylist()
        named = {id_: key for key, id_ in ids.items()}
        found: dict[Any, set[int]] = {}
        for edge in edges:
            found.setdefault(named[edge["result_id"]], set()).add(edge["source_id"])
        second = 1 << ROW_BITS
        expected_ = {
            (0, "x", 1): {0},
            (0, "y", 1): {1},
            (0, "x", None): {2},
            (1, "x", 1): {0, second},
            (1, "y", 1): {1},
            (1, "x", None): {2},
        }
        assert found == expected_
        reached = asked.reached(np.array([0, second + 1]))
        pairs = {(named[r["result_id"]], r["source_id"]) for r in reached.to_pylist()}
        assert pairs == {((0, "x", 1), 0), ((1, "x", 1), 0)}
        again = asking.records(reader.query, source, np.array([second, 2])).to_pylist()
        assert [(r["file"], r["row"], r["city"], r["kind"], r["n"]) for r in again] == [
            ("a.csv", 2, "x", None, 8),
            ("b.csv", 0, "x", 1, 2),
        ]
        lab.put("a.csv", "city,kind,n\nx,1,4\n", 5)
        with pytest.raises(StoreError, match="has changed since it was mapped"):
            asked.edges(np.array([ids[0, "x", 1]]))
