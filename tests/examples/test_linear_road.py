"""The Linear Road generator: the same stream every time, in order, with vehicles that stop."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import headwater as hw
from headwater.errors import HeadwaterError
from headwater.examples import linear_road
from tests.examples.windows import told
from tests.support.streams import Lab, Row


def read(folder: Path) -> pd.DataFrame:
    """The reports in the order in which Spark would read them: by modification time."""
    files = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime)
    tables = [pyarrow.parquet.read_table(file) for file in files]
    return pa.concat_tables(tables).to_pandas()


def alerts(reports: pd.DataFrame) -> dict[tuple[int, int], set[int]]:
    """The stopped query by numpy: (vehicle, end of the window) → the reports behind the alert.

    A vehicle reports every 30 seconds, so a window of 120 seconds has four reports of it if they
    are consecutive; each window is found by its last report.
    """
    standing = reports[reports.speed == 0].sort_values(["vid", "ts"])
    vid = standing.vid.to_numpy()
    pos = standing.pos.to_numpy()
    tid = standing.tid.to_numpy()
    at = standing.ts.astype("int64").to_numpy() // 1_000_000 - linear_road.START
    last = np.arange(3, len(standing))
    first = last - 3
    same = (vid[first] == vid[last]) & (at[last] - at[first] == 90)
    for other in (first, last - 1, last - 2):
        same &= pos[other] == pos[last]
    # Windows start on multiples of 30 s, so only one has all four: it ends after the last of them.
    ends = at // 30 * 30 + 30
    return {(int(vid[i]), int(ends[i])): set(tid[i - 3 : i + 1].tolist()) for i in last[same]}


def expected(reports: pd.DataFrame, delay: int = 0) -> dict[str, dict[Row, set[int]]]:
    """Both sinks' rows with their sets of ids, for the windows that are over."""
    over = reports.ts.max().timestamp() - linear_road.START - delay
    pos = reports.set_index("tid").pos
    stopped, places = {}, defaultdict(list)
    for (vid, end), tids in alerts(reports).items():
        if end <= over:
            at = int(pos[min(tids)])
            stopped[vid, (float(end - 120), float(end)), 4, at, at] = tids
            places[at, (float(end - 30), float(end))].append(tids)
    accidents = {(*at, len(sets)): set().union(*sets) for at, sets in places.items()}
    return {"stopped": stopped, "accidents": {k: v for k, v in accidents.items() if k[2] > 1}}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    folder = tmp_path_factory.mktemp("linear-road") / "data"
    linear_road.generate(folder, reports=60_000)
    return read(folder)


def test_the_stream_is_a_function_of_its_parameters(tmp_path: Path) -> None:
    for name in ("one", "two"):
        linear_road.generate(tmp_path / name, reports=5_000, files=4)
    linear_road.generate(tmp_path / "files", reports=5_000, files=9)
    linear_road.generate(tmp_path / "seed", reports=5_000, files=4, seed=8)

    one = [file.read_bytes() for file in sorted((tmp_path / "one").iterdir())]
    assert one == [file.read_bytes() for file in sorted((tmp_path / "two").iterdir())]
    assert read(tmp_path / "files").equals(read(tmp_path / "one"))
    assert not read(tmp_path / "seed").equals(read(tmp_path / "one"))


def test_columns_are_as_declared(reports: pd.DataFrame) -> None:
    types = {"int64": "bigint", "int32": "int", "datetime64[us, UTC]": "timestamp"}
    found = ", ".join(f"{name} {types[str(dtype)]}" for name, dtype in reports.dtypes.items())
    assert found == linear_road.SCHEMA


def test_every_report_is_there_once_and_in_time_order(reports: pd.DataFrame) -> None:
    assert reports.tid.tolist() == list(range(60_000))
    assert reports.ts.is_monotonic_increasing
    assert str(reports.ts.iloc[0]) == "2025-01-01 00:00:00+00:00"


def test_vehicles_report_every_30_seconds(reports: pd.DataFrame) -> None:
    steps = reports.sort_values(["vid", "ts"]).groupby("vid").ts.diff().dropna()
    assert set(steps.dt.total_seconds()) == {30}


def test_positions_are_on_the_road(reports: pd.DataFrame) -> None:
    assert reports.pos.between(0, 527_999).all()
    assert (reports.seg == reports.pos // 5_280).all()
    assert reports.lane.between(0, 4).all()
    assert reports.speed.between(0, 100).all()
    assert reports.dir.isin([0, 1]).all()


@pytest.mark.parametrize("share", [0.0, 0.12, 0.5])
def test_the_asked_share_of_vehicles_stops(tmp_path: Path, share: float) -> None:
    linear_road.generate(tmp_path / "data", reports=120_000, stopped=share)
    whole = read(tmp_path / "data").groupby("vid").filter(lambda g: len(g) == linear_road.TRIP)
    stops = whole.groupby("vid").speed.min() == 0
    assert len(stops) > 500
    assert stops.mean() == pytest.approx(share, abs=0.03)


def test_a_vehicle_that_stops_stands_for_at_least_four_reports(reports: pd.DataFrame) -> None:
    whole = reports.groupby("vid").filter(lambda g: len(g) == linear_road.TRIP)
    stood = {vid for vid, _ in alerts(whole)}
    assert stood == set(whole[whole.speed == 0].vid)


def test_some_vehicles_meet_in_accidents(reports: pd.DataFrame) -> None:
    standing = reports[reports.speed == 0]
    step = standing.ts.astype("int64") // 30_000_000
    place = [step, standing.xway, standing.lane, standing.dir, standing.pos]
    together = Counter(standing.groupby(place).vid.nunique())
    assert together[2] > 100
    assert set(together) == {1, 2}


def test_the_numpy_oracle_agrees_with_the_definition(reports: pd.DataFrame) -> None:
    """Counts every window the long way: n = 4 and lo = hi."""
    standing = reports[reports.speed == 0].copy()
    at = standing.ts.astype("int64") // 1_000_000 - linear_road.START
    windows = pd.concat(
        [standing.assign(end=(at // 30 + 1 + shift) * 30) for shift in range(4)]
    ).groupby(["vid", "end"])
    expected = {
        (int(vid), int(end)): set(group.tid)
        for (vid, end), group in windows
        if len(group) == 4 and group.pos.nunique() == 1
    }
    assert len(expected) > 1_000
    assert alerts(reports) == expected


def test_files_are_seconds_apart_and_nothing_hidden_is_left(tmp_path: Path) -> None:
    files = linear_road.generate(tmp_path, reports=1_000, files=7)
    assert sorted(tmp_path.iterdir()) == files
    times = [file.stat().st_mtime for file in files]
    assert all(after - before == 1 for before, after in pairwise(times))


def test_disorder_delays_by_at_most_that_much(tmp_path: Path) -> None:
    linear_road.generate(tmp_path / "data", reports=20_000, disorder=45)
    late = read(tmp_path / "data")
    assert sorted(late.tid) == list(range(20_000))
    assert not late.ts.is_monotonic_increasing
    behind = (late.ts.cummax() - late.ts).dt.total_seconds()
    assert 30 < behind.max() <= 45


def test_csv_has_the_same_reports(tmp_path: Path, reports: pd.DataFrame) -> None:
    files = linear_road.generate(tmp_path, reports=60_000, format="csv")
    text = pa.concat_tables(
        pyarrow.csv.read_csv(file, pyarrow.csv.ReadOptions(column_names=reports.columns.tolist()))
        for file in files
    ).to_pandas()
    assert (text.ts == reports.ts).all()
    assert (text.drop(columns="ts") == reports.drop(columns="ts")).all(axis=None)


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_spark_reads_what_was_written(spark, tmp_path: Path, format: str) -> None:
    linear_road.generate(tmp_path / "data", reports=2_000, files=3, format=format)
    read = spark.read.format(format).schema(linear_road.SCHEMA).load(str(tmp_path / "data"))
    row = read.where("tid = 1999").selectExpr("cast(ts as string) ts", "vid", "pos").first()
    linear_road.generate(tmp_path / "check", reports=2_000, files=1)
    last = pyarrow.parquet.read_table(tmp_path / "check").to_pandas().iloc[-1]
    assert (row.ts, row.vid, row.pos) == (f"{last.ts:%Y-%m-%d %H:%M:%S}", last.vid, last.pos)
    assert read.count() == 2_000
    assert read.where("tid is null or ts is null or pos is null").count() == 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"format": "avro"}, "format 'avro' is unknown"),
        ({"reports": 3, "files": 4}, "can't write 3 reports to 4 files"),
        ({"stopped": 1.5}, "not a share between 0 and 1"),
        ({"disorder": -1}, "not a number of seconds"),
    ],
)
def test_bad_parameters_are_named(tmp_path: Path, parameters: dict, message: str) -> None:
    with pytest.raises(HeadwaterError, match=message):
        linear_road.generate(tmp_path, **parameters)
    assert not any(tmp_path.iterdir())


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(HeadwaterError, match="is not empty"):
        linear_road.generate(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.spark
def test_results_and_sets(flow: hw.Flow, lab: Lab) -> None:
    linear_road.generate(lab.home / "data", reports=2_000, stopped=0.4, files=4, disorder=45)
    options = {"maxFilesPerTrigger": 1}
    linear_road.sinks(flow, lab.home / "data", watermark="45 seconds", options=options)
    found = lab.tell(flow)
    sets = expected(read(lab.home / "data"), delay=45)
    for sink in linear_road.SINKS:
        assert found[sink] == told("reports", sets[sink]), sink
        assert len(found[sink]) > 3, sink
