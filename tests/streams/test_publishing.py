"""Publishing: what is accepted, what is refused, and by whom."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from headwater.errors import UnknownStream
from headwater.streams import Producer, SchemaClash, StreamError, StreamRemoved, Streams
from headwater.streams.parquet_files import producers

AT = datetime(2025, 1, 1, tzinfo=UTC)
FLOW = Producer("weather/storms", "flow", version=3)


def test_rows_arrow_and_pandas_become_the_same_events(radar: Streams) -> None:
    row = {"scan": 1, "at": AT, "station": "KIND", "dbz": [40.0, 55.5]}
    table = pa.Table.from_pylist([row])
    for events in (row, [row], table, table.to_batches(), table.to_batches()[0]):
        radar.publish("radar", events)
    radar.publish("radar", pd.DataFrame([row]))
    radar.publish("radar", table.select(["dbz", "station", "at", "scan"]))
    assert radar.table("radar").to_pylist() == [row] * 7


def test_what_is_absent_is_null(radar: Streams) -> None:
    radar.publish("radar", {"scan": 1})
    radar.publish("radar", pa.table({"station": ["KVWX"]}))
    assert radar.table("radar")["scan"].to_pylist() == [1, None]
    assert radar.table("radar")["station"].to_pylist() == [None, "KVWX"]


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ({"scan": "7"}, "column 'scan' of stream 'radar' is bigint, not string"),
        ({"scan": 1.5}, "column 'scan' of stream 'radar' has a value that does not fit"),
        ({"scan": True}, "column 'scan' of stream 'radar' is bigint, not boolean"),
        ({"at": 5}, "column 'at' of stream 'radar' is timestamp, not bigint"),
        ({"dbz": ["x"]}, "column 'dbz' of stream 'radar' is array<double>, not array<string>"),
        ({"height": 3}, "column 'height' is not in stream 'radar'; its columns are scan, at"),
        (pa.table({"scan": ["7"]}), "column 'scan' of stream 'radar' is bigint, not string"),
        (pa.table({"height": [7]}), "column 'height' is not in stream 'radar'"),
        ([{"scan": 1}, {"scan": "x"}], "column 'scan' of stream 'radar' has values of different"),
    ],
)
def test_a_clash_of_schemas_names_the_column(radar: Streams, events: Any, said: str) -> None:
    with pytest.raises(SchemaClash, match=said):
        radar.publish("radar", events)
    assert radar.describe("radar").events == 0


def test_a_required_column_is_required(opened: Streams) -> None:
    opened.create("s", "id bigint not null, x int")
    with pytest.raises(SchemaClash, match="column 'id' of stream 's' may not be null"):
        opened.publish("s", {"x": 1})


def test_names_are_unique_and_checked(radar: Streams) -> None:
    with pytest.raises(StreamError, match="'radar' is there already in .*, of person"):
        radar.create("radar", "x int")
    for bad in ("", "_x", ".x", "a/b", "ü", "x" * 101):
        with pytest.raises(StreamError, match="can't be a stream's name"):
            radar.create(bad, "x int")
    assert radar.names() == ["radar"]
    (radar.folder / "mine").mkdir()
    (radar.folder / "mine" / "file").touch()
    with pytest.raises(StreamError, match="mine is there and is not a stream"):
        radar.create("mine", "x int")
    with pytest.raises(UnknownStream, match="no stream 'rader' in .*; there is radar"):
        radar.publish("rader", {"x": 1})


def test_another_producers_stream_needs_consent(opened: Streams) -> None:
    opened.create("storms", "cells int", producer=FLOW)
    with pytest.raises(StreamError, match="is of flow weather/storms, version 3, not of person"):
        opened.publish("storms", {"cells": 1})
    opened.publish("storms", {"cells": 1}, consent=True)
    # A later version of the same node is the same producer, and is told apart in the files.
    opened.publish("storms", {"cells": 2}, producer=Producer("weather/storms", "flow", version=4))
    files = sorted(opened.path("storms").glob("*.parquet"))
    told = [producers(file)[0] for file in files]
    assert told[0]["producer"].startswith("person ")
    assert told[1] == {"events": 1, "producer": "flow weather/storms", "version": 4}


def test_a_stopped_stream_takes_no_events(radar: Streams) -> None:
    radar.stop("radar")
    with pytest.raises(StreamError, match="'radar' is stopped; resume it to publish"):
        radar.publish("radar", {"scan": 1})
    radar.resume("radar")
    assert radar.publish("radar", {"scan": 1}).events == 1


def test_threads_share_files_and_keep_their_order(radar: Streams) -> None:
    def work(number: int) -> None:
        for scan in range(20):
            station = {"scan": scan, "station": str(number)}
            assert radar.publish("radar", station, key=(f"thread {number}", scan)).events == 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = radar.table("radar").to_pylist()
    for number in range(8):
        assert [r["scan"] for r in rows if r["station"] == str(number)] == list(range(20))
    files = len(list(radar.path("radar").glob("*.parquet")))
    assert files < 160 / 2  # waiting threads shared a file, mostly


def test_one_threads_bad_event_is_its_own(radar: Streams) -> None:
    """Those that happen to share a file with a bad event are published all the same."""
    errors: list[Exception] = []

    def work(number: int) -> None:
        for _ in range(10):
            try:
                radar.publish("radar", {"scan": "bad" if number == 0 else number})
            except SchemaClash as error:
                errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 10
    assert radar.describe("radar").events == 50


def test_a_publisher_sends_the_good_and_keeps_the_bad(radar: Streams) -> None:
    with radar.publisher("radar", size=10, linger=60) as publisher:
        for scan in range(25):
            publisher.send({"scan": scan if scan != 12 else "twelve"})
        publisher.flush()
        assert publisher.published == 24
        publisher.send_many(pa.table({"scan": [25, 26]}))
    assert publisher.rejected == 1
    assert radar.table("radar")["scan"].to_pylist() == [n for n in range(27) if n != 12]
    (letter,) = radar.letters("radar").read()
    assert letter["reason"] == "column 'scan': 'twelve' is not a bigint"
    assert letter["event"] == '{"scan": "twelve"}'


def test_a_publisher_lingers_no_longer_than_told(radar: Streams) -> None:
    with radar.publisher("radar", linger=0.01) as publisher:
        publisher.send({"scan": 1})
        with radar.subscribe("radar", idle=5) as batches:
            assert next(batches).table["scan"].to_pylist() == [1]


def test_a_publisher_tells_of_a_removed_stream(radar: Streams) -> None:
    publisher = radar.publisher("radar", linger=60)
    radar.remove("radar")
    publisher.send({"scan": 1})
    with pytest.raises(StreamRemoved, match="stream 'radar' in .* was removed"):
        publisher.flush()
    with pytest.raises(StreamRemoved):
        publisher.close()
