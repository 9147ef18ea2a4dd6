"""What the registry tells: rates from the index, the last event, and the state."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from headwater.streams import StreamError, Streams, index
from headwater.streams import describing as d
from headwater.streams.index import Commit


def test_a_stream_is_described(radar: Streams) -> None:
    assert radar.describe("radar").state == "idle"
    at = datetime(2025, 1, 1, tzinfo=UTC)
    before = datetime.now(UTC).replace(microsecond=0)
    radar.publish("radar", [{"scan": 1}, {"scan": 2, "at": at, "station": "KIND"}])
    radar.advance("radar", "page", 1)
    told = radar.describe("radar", intervals=3, interval=20.0)
    assert (told.state, told.events, told.rates) == ("live", 2, (0.0, 0.0, 0.1))
    assert told.last_event == {"scan": 2, "at": at, "station": "KIND", "dbz": None}
    assert told.last_time == at
    assert told.last_at is not None
    assert told.last_at >= before
    assert [(c.consumer, c.lag) for c in told.consumers] == [("page", 1)]
    radar.stop("radar")
    assert radar.describe("radar").state == "stopped"
    assert radar.describe("radar").as_dict()["producer"]["kind"] == "person"


def test_a_stream_falls_idle(radar: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    radar.publish("radar", {"scan": 1})
    now = time.time()
    monkeypatch.setattr(d.time, "time", lambda: now + 11)
    assert radar.describe("radar").state == "idle"
    assert radar.describe("radar", interval=60.0).state == "live"


def test_rates_are_read_from_the_end_of_a_long_index(
    radar: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "_TAIL", 100)
    path = radar.path("radar") / "_index"
    path.write_bytes(b"".join(Commit(n * 10, 10, 1_000 * n).line() for n in range(500)))
    found = index.recent(path, 480_000)
    assert [one.at for one in found] == [1_000 * n for n in range(480, 500)]
    assert sum(one.events for one in found) == 200
    assert len(index.recent(path, 0)) == 500
    assert [one.at for one in index.recent(path, 500_000)] == [499_000]  # the last, however old


def test_the_columns_of_a_declaration_are_checked(opened: Streams) -> None:
    with pytest.raises(StreamError, match="event_time='t' of stream 's' is none of its columns: x"):
        opened.create("s", "x int", event_time="t")
    with pytest.raises(StreamError, match="event_time='x' of stream 's' is a int, not a timestamp"):
        opened.create("s", "x int", event_time="x")
    with pytest.raises(StreamError, match="option 'speed' of stream 's' is none of compression"):
        opened.create("s", "x int", options={"speed": "high"})
    with pytest.raises(StreamError, match="log='pipe' of stream 's' is neither 'parquet' nor"):
        opened.create("s", "x int", log="pipe")
    assert opened.names() == []
