"""How far a query is, by Spark's own logs; what lies behind a cut."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headwater import streams
from headwater.capture.checkpoint import Checkpoint
from headwater.deploy.building.calls import Calls
from headwater.deploy.building.pieces import pieces
from headwater.deploy.units.feeding import Feeder, first_since, latest_time
from headwater.deploy.units.places import Places
from headwater.errors import FlowError, RunError
from tests.deploy.support import parse


def log(folder: Path, name: str, entries: list[tuple[int, str]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps({"path": path, "timestamp": 1, "batchId": batch}) for batch, path in entries
    ]
    (folder / name).write_text("\n".join(["v1", *lines]))


def test_the_last_file_of_each_stream(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    for batch, (one, other) in enumerate([(0, None), (1, 0), (1, 1)]):
        told = ["v1", "{}"] + [
            "-" if each is None else json.dumps({"logOffset": each}) for each in (one, other)
        ]
        (tmp_path / "offsets" / str(batch)).write_text("\n".join(told))
    log(tmp_path / "sources" / "0", "0", [(0, "file:///u/inputs/a/001.parquet")])
    log(
        tmp_path / "sources" / "0",
        "1.compact",
        [
            (0, "file:///u/inputs/a/001.parquet"),
            (1, "file:///u/inputs/a/003.parquet"),
            (1, "file:///u/inputs/a/002.parquet"),
        ],
    )
    log(tmp_path / "sources" / "1", "0", [(0, "file:///u/inputs/b/000.parquet")])
    log(tmp_path / "sources" / "1", "1", [(1, "file:///u/inputs/b/005.parquet")])
    places = Places(tmp_path)
    assert places.after(0) == {"a": "001.parquet"}
    assert places.after(1) == {"a": "003.parquet", "b": "000.parquet"}
    assert places.after(2) == {"a": "003.parquet", "b": "005.parquet"}
    assert places.after(3) == {}


@pytest.mark.parametrize("text", ["", "v1\n{}\n{", "v1\n{}\n[]", "\x00\xff", "v1\n{}\n{}"])
@pytest.mark.parametrize("file", ["offsets/0", "sources/0/0"])
def test_a_damaged_log_is_named(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text('v1\n{"batchWatermarkMs": 5}\n{"logOffset": 0}')
    log(tmp_path / "sources" / "0", "0", [(0, "file:///u/inputs/a/001.parquet")])
    assert Places(tmp_path).after(0) == {"a": "001.parquet"}
    (tmp_path / file).write_bytes(text.encode("latin-1"))
    with pytest.raises(RunError, match=f"{file} is damaged; put a copy of its checkpoint back"):
        Places(tmp_path).after(0)
    if file == "offsets/0" and not text.startswith("v1"):
        with pytest.raises(RunError, match="offsets/0 is damaged; put a copy"):
            Checkpoint.at(str(tmp_path)).watermark(0)


def test_feeding_from_one_place_to_another(tmp_path: Path) -> None:
    registry = streams.open(tmp_path / "streams")
    registry.create("s", "xs array<int>, at timestamp", event_time="at")
    for minute in (5, 1, 9, 3):
        moment = datetime(2026, 1, 1, 0, minute, tzinfo=UTC)
        registry.publish("s", [{"xs": [1], "at": moment}, {"xs": [], "at": moment}])
    feeder = Feeder(registry, "s", tmp_path / "in", 2)
    feeder.until = 6
    assert (feeder.feed(), feeder.position) == (4, 6)
    again = Feeder(registry, "s", tmp_path / "in", 2)
    assert again.position == 6, "a restart knows what is there"
    again.feed()
    assert sorted(path.name for path in (tmp_path / "in").glob("*.parquet")) == [
        f"{number:020d}.parquet" for number in (2, 4, 6)
    ]
    at = int(datetime(2026, 1, 1, 0, 4, tzinfo=UTC).timestamp() * 1e6)
    assert first_since(registry, "s", 0, "at", at) == 0
    assert first_since(registry, "s", 2, "at", at) == 4
    assert first_since(registry, "s", 6, "at", at) == 8, "nothing that late is left"
    latest = latest_time(tmp_path / "in", "at")
    assert latest == int(datetime(2026, 1, 1, 0, 9, tzinfo=UTC).timestamp() * 1e6)


def test_two_streams_into_one_function_are_refused() -> None:
    flow = parse(
        "two",
        """
        one: {map: {from: nums, columns: {a: n}, keep: [n]}}
        other: {map: {from: nums, columns: {b: n}, keep: [n]}}
        both: {function: {from: [one, other], call: "m:f", schema: c bigint}}
        """,
    )
    with pytest.raises(FlowError, match="node 'both' .*reads 2 streams, 'one' and 'other'"):
        pieces(flow.plan())


def test_a_service_as_jobs_is_refused() -> None:
    flow = parse(
        "served",
        """
        asked: {service: {from: nums, target: "m:f", response: c bigint, runtime: jobs}}
        """,
    )
    with pytest.raises(FlowError, match="node 'asked' .*a service can't be deployed with"):
        pieces(flow.plan())


def test_what_a_module_beside_the_file_is_made_of(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from helping import x\ndef f(): return x\n")
    (tmp_path / "helping.py").write_text("x = 1\n")
    (tmp_path / "run.sh").write_text("echo 1\n")
    calls = Calls(str(tmp_path))
    before = calls.content("mine:f"), calls.content_of_command("sh run.sh --fast")
    assert all(before)
    assert calls.content("json:loads") == ""
    (tmp_path / "helping.py").write_text("x = 2\n")
    (tmp_path / "run.sh").write_text("echo 2\n")
    after = calls.content("mine:f"), calls.content_of_command("sh run.sh --fast")
    assert all(one != other for one, other in zip(before, after, strict=True))
    with pytest.raises(FlowError, match="node 'n': 'mine:g' is no function"):
        calls.function("mine:g", "n")
    with pytest.raises(FlowError, match="node 'n': 'absent:f' can't be imported"):
        calls.function("absent:f", "n")
