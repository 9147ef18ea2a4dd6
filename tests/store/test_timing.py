"""Limits of time: what is asked of a store ends in time, and nothing else does."""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import QueryTimeout
from headwater.store import EmbeddedWriter
from headwater.store.reader import StoreReader
from headwater.store.timing import _watcher, left, time_limit, watched
from tests.store.small import batch, flow, reports, stopped

ENDLESS = "SELECT count(*) AS n FROM range(1000000000000) a, range(1000000) b"
QUICK = "SELECT count(*) AS n FROM batches"


@pytest.fixture(params=["owner", "file"])
def reader(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[StoreReader]:
    """A store in this process's own hands, and one that is read from its file."""
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow())
        writer.commit(batch(0, stopped((8, 10, "b", 4, [1])), reports((1, 0, 3))))
        if request.param == "owner":
            yield StoreReader(tmp_path)
            return
    made = StoreReader(tmp_path)
    yield made
    made.close()


def test_there_is_no_limit_unless_one_is_set(reader: StoreReader) -> None:
    assert left() is None
    with time_limit(None):
        assert left() is None
        assert reader.query(QUICK)["n"][0].as_py() == 1
    with time_limit(5.0):
        rest = left()
        assert rest is not None
        assert 4.0 < rest <= 5.0
        with time_limit(1.0):
            inner = left()
            assert inner is not None
            assert inner <= 1.0
        rest = left()
        assert rest is not None
        assert rest > 4.0
    assert left() is None


def test_an_endless_query_ends(reader: StoreReader) -> None:
    begun = time.monotonic()
    with time_limit(0.3), pytest.raises(QueryTimeout, match="took too long; ask for less"):
        reader.query(ENDLESS)
    assert 0.25 < time.monotonic() - begun < 2.5
    assert reader.query(QUICK)["n"][0].as_py() == 1, "the next one is asked as ever"


def test_a_limit_is_for_all_that_is_asked(reader: StoreReader) -> None:
    with time_limit(0.2):
        assert reader.query(QUICK)["n"][0].as_py() == 1
        time.sleep(0.25)
        begun = time.monotonic()
        with pytest.raises(QueryTimeout):
            reader.query(QUICK)
        assert time.monotonic() - begun < 0.2, "it is not begun"


def test_a_limit_that_is_over_interrupts_nothing_that_comes_later(reader: StoreReader) -> None:
    for _ in range(30):
        with time_limit(0.005), contextlib.suppress(QueryTimeout):
            reader.query(QUICK)
    time.sleep(0.05)
    for _ in range(30):
        assert reader.query(QUICK)["n"][0].as_py() == 1
    assert not _watcher._cursors


def test_each_thread_has_its_own_limit(reader: StoreReader) -> None:
    def ask(seconds: float) -> float:
        begun = time.monotonic()
        with time_limit(seconds), pytest.raises(QueryTimeout):
            reader.query(ENDLESS)
        return time.monotonic() - begun

    waits = [0.2, 0.9, 0.5, 0.7]
    with ThreadPoolExecutor(4) as pool:
        took = list(pool.map(ask, waits))
    for seconds, wait in zip(took, waits, strict=True):
        assert wait * 0.9 < seconds < wait + 2.0


def test_a_limit_goes_along_with_a_context(reader: StoreReader) -> None:
    seen: list[bool] = []
    with time_limit(3.0):
        context = contextvars.copy_context()
        plain = threading.Thread(target=lambda: seen.append(left() is None))
        carried = threading.Thread(target=lambda: context.run(lambda: seen.append(left() is None)))
        for thread in (plain, carried):
            thread.start()
            thread.join()
    assert seen == [True, False]


def test_one_thread_watches_all(reader: StoreReader) -> None:
    def ask(_: int) -> None:
        with time_limit(20.0):
            assert reader.query(QUICK)["n"][0].as_py() == 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(200)))
    watching = [t for t in threading.enumerate() if t.name == "headwater-time-limits"]
    assert len(watching) == 1
    assert not _watcher._cursors, "nothing is kept of what is done"


def test_an_interruption_that_is_not_heard_is_repeated() -> None:
    """One that comes between two statements of a query is lost."""

    class Deaf:
        def __init__(self) -> None:
            self.interrupted = 0
            self.heard = threading.Event()

        def interrupt(self) -> None:
            self.interrupted += 1
            if self.interrupted == 3:
                self.heard.set()

    cursor: Any = Deaf()
    with time_limit(0.05), watched(cursor):
        assert cursor.heard.wait(10)
    assert not _watcher._cursors
    count = cursor.interrupted
    time.sleep(0.3)
    assert cursor.interrupted <= count + 1, "it is left alone once it has ended"
