"""All examples of one shape: streams that are functions of their parameters, and their sinks."""

from __future__ import annotations

import inspect
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater import examples
from headwater.errors import HeadwaterError
from headwater.examples import load
from tests.examples import (
    test_linear_road,
    test_object_annotation,
    test_smart_grid,
    test_synthetic,
    test_vehicle_tracking,
)
from tests.examples.windows import SECOND, records

EACH = pytest.mark.parametrize("name", examples.NAMES)


def read(folder: Path) -> pa.Table:
    """The records in the order in which Spark would read them: by modification time."""
    files = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime)
    return pa.concat_tables([pq.read_table(file) for file in files])


def test_every_module_is_listed() -> None:
    there = {f.stem for f in Path(examples.__file__).parent.glob("*.py")}
    of_another_shape = {"overheating", "hashtags", "hashtag_provenance"}
    helpers = {"__init__", "stream", "line_files", "live_traffic"}
    assert there - of_another_shape - helpers == set(examples.NAMES)
    with pytest.raises(HeadwaterError, match="no example is called 'wordcount'"):
        load("wordcount")


@EACH
def test_modules_have_the_shape(name: str) -> None:
    module = load(name)
    generate = list(inspect.signature(module.generate).parameters)
    assert generate[0] == "path"
    assert {"files", "seed", "disorder"} < set(generate)
    sinks = inspect.signature(module.sinks).parameters
    assert list(sinks)[:2] == ["flow", "path"]
    assert {"only", "watermark", "source"} < set(sinks)


@EACH
def test_the_stream_is_a_function_of_its_parameters(tmp_path: Path, name: str) -> None:
    generate = load(name).generate
    for folder in ("one", "two"):
        generate(tmp_path / folder, 2_000, files=4)
    generate(tmp_path / "files", 2_000, files=9)
    generate(tmp_path / "seed", 2_000, files=4, seed=8)

    one = [file.read_bytes() for file in sorted((tmp_path / "one").iterdir())]
    assert one == [file.read_bytes() for file in sorted((tmp_path / "two").iterdir())]
    assert read(tmp_path / "files").equals(read(tmp_path / "one"))
    assert not read(tmp_path / "seed").equals(read(tmp_path / "one"))


@EACH
def test_every_record_is_there_once_and_in_time_order(tmp_path: Path, name: str) -> None:
    files = load(name).generate(tmp_path, 2_000, files=7)
    assert [f.name for f in files] == [f"{load(name).SOURCE}-{i:05}.parquet" for i in range(7)]
    assert sorted(tmp_path.iterdir()) == files
    assert all(b.stat().st_mtime - a.stat().st_mtime == 1 for a, b in pairwise(files))
    ids, times = (read(tmp_path).column(i).to_pylist() for i in range(2))
    assert ids == list(range(2_000))
    assert times == sorted(times)
    assert f"{times[0]:%Y-%m-%d %H:%M:%S}" == "2025-01-01 00:00:00"


@EACH
def test_disorder_delays_by_at_most_that_much(tmp_path: Path, name: str) -> None:
    disorder = {"smart_grid": 7_200}.get(name, 60)
    load(name).generate(tmp_path / "late", 2_000, files=3, disorder=disorder)
    load(name).generate(tmp_path / "none", 2_000, files=3)
    late = records(tmp_path / "late")
    behind, latest = 0, 0
    for row in late:
        latest = max(latest, row["at"])
        behind = max(behind, latest - row["at"])
    assert disorder / 2 < behind / SECOND <= disorder
    first = next(iter(late[0]))
    assert sorted(late, key=lambda row: row[first]) == records(tmp_path / "none")


@EACH
def test_a_small_stream_has_several_results_for_each_sink(tmp_path: Path, name: str) -> None:
    load(name).generate(tmp_path, 5_000)
    found = {
        "linear_road": lambda: test_linear_road.expected(test_linear_road.read(tmp_path)),
        "smart_grid": lambda: test_smart_grid.expected(records(tmp_path)),
        "vehicle_tracking": lambda: test_vehicle_tracking.expected(records(tmp_path)),
        "object_annotation": lambda: test_object_annotation.expected(records(tmp_path)),
        "synthetic": lambda: {"windows": test_synthetic.expected(tmp_path, 50, 38, 8)},
    }[name]()
    assert set(found) == set(load(name).SINKS)
    few = {sink: len(sets) for sink, sets in found.items() if len(sets) < 3}
    assert few == {}


@EACH
def test_bad_parameters_are_named(tmp_path: Path, name: str) -> None:
    generate, source = load(name).generate, load(name).SOURCE
    with pytest.raises(HeadwaterError, match=f"can't write 3 {source} to 4 files"):
        generate(tmp_path, 3, files=4)
    with pytest.raises(HeadwaterError, match="disorder=-1 is not a number of seconds"):
        generate(tmp_path, disorder=-1)
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(HeadwaterError, match="is not empty"):
        generate(tmp_path, 100)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.spark
@EACH
def test_spark_reads_what_was_written(spark: SparkSession, tmp_path: Path, name: str) -> None:
    module = load(name)
    module.generate(tmp_path / "data", 200, files=3)
    rows = spark.read.schema(module.SCHEMA).parquet(str(tmp_path / "data"))
    inferred = spark.read.parquet(str(tmp_path / "data"))
    assert rows.schema.simpleString() == inferred.schema.simpleString()
    assert rows.count() == 200


@pytest.mark.spark
@EACH
def test_sinks_are_those_that_are_asked_for(spark: SparkSession, tmp_path: Path, name: str) -> None:
    module = load(name)
    module.generate(tmp_path / "data", 200, files=3)
    whole = hw.Flow("whole", spark)
    module.sinks(whole, tmp_path / "data")
    assert (list(whole.sources), tuple(whole.sinks)) == ([module.SOURCE], module.SINKS)
    last = hw.Flow("last", spark)
    module.sinks(last, tmp_path / "data", only=module.SINKS[-1:], keep="all")
    assert tuple(last.sinks) == module.SINKS[-1:]
    assert last.sources[module.SOURCE].keep == "all"
    with pytest.raises(HeadwaterError, match="there is no sink 'wrong': there are"):
        module.sinks(hw.Flow("wrong", spark), tmp_path / "data", only=["wrong"])
