"""A store that forgets its oldest batches: whole batches, and nothing that later results need."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from headwater import store as stores
from headwater.errors import HeadwaterError, StoreError, UnknownId
from headwater.store import EmbeddedWriter, retention
from tests.store.small import batch, flow, reports, rows, stopped

DAY = timedelta(days=1)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[EmbeddedWriter]:
    """Four batches, a day apart: batch n has result 10·n of the records 2·n … 2·n + 3."""
    with EmbeddedWriter.open(tmp_path) as made:
        made.register(flow())
        for number in range(4):
            ids = range(2 * number, 2 * number + 4)
            made.commit(
                batch(
                    number,
                    stopped((10 * number, number, "v", 1, ids)),
                    reports(*((one, number, 5) for one in ids)),
                )
            )
            days = 4 - number
            made._connection.execute(
                f"UPDATE batches SET committed_at = now() - INTERVAL '{days} days' "
                f"WHERE batch = {number}"
            ).fetchall()
            if number == 1:
                made.compact()
        yield made


@pytest.mark.parametrize("compacted", [False, True])
def test_what_is_too_old_is_forgotten(writer: EmbeddedWriter, compacted: bool) -> None:
    if compacted:
        writer.compact()
    gone = writer.forget(older_than=2.5 * DAY)
    assert gone == retention.Forgotten(batches=2, results=2, edges=8, records=4)
    with stores.open(writer.path) as store:
        assert rows(store.results("stopped"), "result_id") == [(20,), (30,)]
        assert rows(store.backward("stopped", 20), "id", "speed") == [(n, 5) for n in range(4, 8)]
        # Records 4 and 5 came with a batch that is forgotten, and are behind a later result.
        assert rows(store.forward("reports", 4), "result_id") == [(20,)]
        with pytest.raises(UnknownId):
            store.backward("stopped", 10)
        with pytest.raises(UnknownId):
            store.forward("reports", 1)
        assert store.batches().num_rows == 4
    assert writer.forget(older_than=2.5 * DAY) == retention.Forgotten()
    assert writer.holds("q", 0), "a batch that is forgotten is not taken again"
    writer.commit(batch(4, stopped((40, 4, "v", 1, [8])), reports((8, 4, 5))))
    assert writer.forget(older_than=1.5 * DAY).batches == 1


def test_nothing_is_forgotten_that_is_young_or_fits(writer: EmbeddedWriter) -> None:
    assert writer.forget(older_than=30 * DAY) == retention.Forgotten()
    assert writer.forget(most=10**12) == retention.Forgotten()
    assert writer.forget() == retention.Forgotten()


def test_what_does_not_fit_is_forgotten_oldest_first(writer: EmbeddedWriter) -> None:
    _, gone = retention.cut(writer, older_than=None, most=500, used=1_000)
    assert gone.batches == 2
    assert writer.forget(most=1).batches == 4
    with stores.open(writer.path) as store:
        assert store.results("stopped").num_rows == 0


def test_records_that_replays_read_stay(tmp_path: Path) -> None:
    from tests.store.small import sink, source

    with EmbeddedWriter.open(tmp_path) as made:
        made.register(flow(source(), sink(capture="ancestors")))
        made.commit(batch(0, stopped((10, 0, "v", 1, None)), reports((1, 0, 5))))
        gone = made.forget(most=1)
        assert (gone.batches, gone.records) == (1, 0)
        assert made.query("SELECT count(*) AS n FROM record_1")["n"].to_pylist() == [1]


@pytest.mark.parametrize("text", ["", "30", "-3 days", "3 months", "1.5 hours"])
def test_ages_in_other_words_are_refused(text: str) -> None:
    with pytest.raises(StoreError, match="is no age; write it like"):
        retention.age(text)


@pytest.mark.parametrize("text", ["", "10", "-1 GB", "3 KB", "1.5 GB"])
def test_sizes_in_other_words_are_refused(text: str) -> None:
    with pytest.raises(HeadwaterError, match="is no size; write it like"):
        retention.size(text)
