"""Reading: following a stream, positions that are kept, consumers, expiry and removal."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from headwater.errors import UnknownName
from headwater.streams import Batch, Position, StreamError, StreamRemoved, Streams
from headwater.streams.parquet import ParquetLog


def publish(opened: Streams, *scans: int) -> None:
    opened.publish("radar", [{"scan": scan} for scan in scans])


def scans(batches: object) -> list[int]:
    return [n for batch in batches for n in batch.table["scan"].to_pylist()]  # type: ignore[attr-defined]


def test_a_subscription_follows_and_ends_with_the_stream(radar: Streams) -> None:
    publish(radar, 0, 1)

    def later() -> None:
        for scan in range(2, 6):
            time.sleep(0.02)
            publish(radar, scan)
        radar.stop("radar")

    thread = threading.Thread(target=later)
    thread.start()
    with radar.subscribe("radar") as batches:
        assert scans(batches) == [0, 1, 2, 3, 4, 5]
    thread.join()


def test_what_comes_just_before_a_stop_is_read(
    radar: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    former, looks = ParquetLog.read, 0

    def read(self: ParquetLog, *args: Position) -> Iterator[Batch]:
        nonlocal looks
        looks += 1
        yield from former(self, *args)
        if looks == 1:  # just after the look that found nothing
            publish(radar, 7)
            radar.stop("radar")

    monkeypatch.setattr(ParquetLog, "read", read)
    assert scans(radar.subscribe("radar")) == [7]


def test_a_position_can_be_kept_as_text(radar: Streams) -> None:
    publish(radar, 0, 1, 2)
    publish(radar, 3, 4)
    with radar.subscribe("radar", idle=0) as batches:
        kept = str(next(batches).end)
    assert kept == "3"
    assert scans(radar.subscribe("radar", kept, idle=0)) == [3, 4]
    assert scans(radar.subscribe("radar", 1, idle=0)) == [1, 2, 3, 4]  # in the middle of a file
    with pytest.raises(StreamError, match="position 9 is not in stream 'radar', which has 0 to 5"):
        radar.subscribe("radar", 9)


def test_a_consumer_goes_on_where_it_was(radar: Streams) -> None:
    publish(radar, 0, 1)
    publish(radar, 2)
    with radar.subscribe("radar", consumer="page", idle=0) as batches:
        next(batches)
        batches.done()
        next(batches)  # read, and not said to be done
    (lag,) = radar.describe("radar").consumers
    assert (lag.consumer, lag.position, lag.lag, lag.reading) == ("page", "2", 1, False)
    with radar.subscribe("radar", consumer="page", idle=0) as batches:
        assert scans(batches) == [2]


def test_one_of_a_name_reads_at_a_time(radar: Streams) -> None:
    with radar.subscribe("radar", consumer="page"):
        assert radar.describe("radar").consumers[0].reading
        with pytest.raises(StreamError, match="'page' of stream 'radar' is reading elsewhere"):
            radar.subscribe("radar", consumer="page")
        radar.subscribe("radar", consumer="other").close()
    radar.subscribe("radar", consumer="page").close()


def test_what_a_consumer_has_not_read_stays(radar: Streams) -> None:
    for scan in range(4):
        publish(radar, scan)
    radar.advance("radar", "page", 2)
    with pytest.raises(StreamError, match="'page' of stream 'radar' has read to position 2 only"):
        radar.expire("radar", 3)
    assert radar.expire("radar", 2) == 2
    assert scans(radar.read("radar")) == [2, 3]
    assert radar.expire("radar", 4, force=True) == 2
    assert radar.describe("radar").events == 0
    with pytest.raises(StreamError, match="before position 4 have expired"):
        next(radar.subscribe("radar", consumer="page"))


def test_expiry_by_time(radar: Streams) -> None:
    publish(radar, 0)
    time.sleep(0.01)
    between = datetime.now(UTC)
    time.sleep(0.01)
    publish(radar, 1)
    assert radar.expire("radar", between - timedelta(hours=1)) == 0
    assert radar.expire("radar", between) == 1
    assert scans(radar.read("radar")) == [1]


def test_a_stream_that_is_read_is_removed_by_force_only(radar: Streams) -> None:
    publish(radar, 0)
    with radar.subscribe("radar") as batches:
        next(batches)
        with pytest.raises(StreamError, match="'radar' is read by a subscription"):
            radar.remove("radar")
    radar.advance("radar", "page", 1)
    with pytest.raises(StreamError, match="'radar' is read by page; forget its consumers"):
        radar.remove("radar")
    radar.forget("radar", "page")
    radar.remove("radar")
    assert radar.names() == []
    with pytest.raises(UnknownName):
        radar.forget("radar", "page")


@pytest.mark.parametrize("again", [False, True])
def test_a_reader_of_a_removed_stream_is_told(radar: Streams, again: bool) -> None:
    publish(radar, 0)
    batches = radar.subscribe("radar", consumer="page")
    next(batches)
    radar.remove("radar", force=True)
    if again:
        radar.create("radar", "scan bigint")
        publish(radar, 7)
    with pytest.raises(StreamRemoved, match="stream 'radar' in .* was removed"):
        next(batches)
    with pytest.raises(StreamRemoved):
        batches.done(Position.of(1))
    batches.close()


def test_a_batch_that_was_removed_under_a_publisher_goes_nowhere(radar: Streams) -> None:
    """The name is taken again, by a stream with other columns."""
    publisher = radar.publisher("radar", linger=60)
    publisher.send({"scan": 1})
    radar.remove("radar")
    radar.create("radar", "x string")
    with pytest.raises(StreamRemoved, match="another now has its name"):
        publisher.flush()
    with pytest.raises(StreamRemoved):
        publisher.close()
    assert radar.describe("radar").events == 0
