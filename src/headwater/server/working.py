"""Work that would hold up the service, in threads: so much at a time, each for so long."""

from __future__ import annotations

import asyncio
import contextvars
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from headwater.errors import QueryTimeout
from headwater.server.failures import Refused
from headwater.store.timing import time_limit

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.server.settings import Limits

Answer = TypeVar("Answer")


class Work:
    """Pools of threads: for queries, for what needs Spark, and for what only waits for files."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._queries = ThreadPoolExecutor(limits.workers, "headwater-query")
        self._spark = ThreadPoolExecutor(1, "headwater-replay")
        self._files = ThreadPoolExecutor(limits.workers * 4, "headwater-files")
        self._changes = ThreadPoolExecutor(4, "headwater-change")
        self._waiting = self._replaying = 0

    async def query(self, call: Callable[[], Answer], seconds: float | None = None) -> Answer:
        """Ask the store, within the time that queries have."""
        if self._waiting >= self._limits.waiting + self._limits.workers:
            raise Refused(503, "too many queries at once; try again", "Busy", {"retry-after": "1"})

        def done() -> None:
            self._waiting -= 1

        self._waiting += 1
        limit = self._limits.seconds if seconds is None else seconds
        return await _run(self._queries, lambda: _limited(call, limit), limit, done)

    async def spark(self, call: Callable[[], Answer]) -> Answer:
        """Do what needs Spark: one at a time."""
        if self._replaying >= 8:
            raise Refused(503, "too many replays at once; try again", "Busy", {"retry-after": "5"})
        group = f"headwater-{uuid.uuid4().hex}"

        def grouped() -> Answer:
            if (context := _context()) is not None:
                context.setJobGroup(group, "asked of the service", interruptOnCancel=True)
            return _limited(call, limit)

        def done() -> None:
            self._replaying -= 1

        self._replaying += 1
        limit = self._limits.replay_seconds
        try:
            return await _run(self._spark, grouped, limit, done)
        except QueryTimeout:
            # Nobody waits for it any more, and the next one waits for its thread.
            with suppress(Exception):
                if (context := _context()) is not None:
                    await _run(self._files, lambda: context.cancelJobGroup(group), None)
            raise

    async def files(self, call: Callable[[], Answer]) -> Answer:
        """Write streams: it is done when it is answered."""
        return await _run(self._files, call, None)

    async def look(self, call: Callable[[], Answer]) -> Answer:
        """Read streams and other files, within the time that queries have."""
        return await _run(self._files, call, self._limits.seconds)

    async def change(self, call: Callable[[], Answer]) -> Answer:
        """Change what runs: it takes its time, and is never given up half way."""
        return await asyncio.shield(_run(self._changes, call, None))

    def close(self) -> None:
        """Let go of the threads."""
        for pool in (self._queries, self._spark, self._files, self._changes):
            pool.shutdown(wait=False, cancel_futures=True)


def _limited(call: Callable[[], Answer], seconds: float) -> Answer:
    with time_limit(seconds):
        return call()


def _context() -> Any:
    """Spark's context, if Spark runs here."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context


async def _run(
    pool: ThreadPoolExecutor,
    call: Callable[[], Answer],
    seconds: float | None,
    done: Callable[[], None] | None = None,
) -> Answer:
    """Have a thread call; `done` is told in the loop when it has, though nobody may wait."""
    context = contextvars.copy_context()
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Answer] = loop.create_future()

    def tell(result: Any, error: BaseException | None) -> None:
        if done is not None:
            done()
        if answer.done():
            return
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(error)

    def work() -> None:
        result, error = None, None
        try:
            result = context.run(call)
        except BaseException as raised:  # noqa: BLE001 - raised where it is waited for
            error = raised
        with suppress(RuntimeError):  # the loop may have ended
            loop.call_soon_threadsafe(tell, result, error)

    pool.submit(work)
    if seconds is None:
        return await answer
    try:
        # A little more than the call itself has: it may end by itself, and then says more.
        async with asyncio.timeout(seconds + 1.0):
            return await answer
    except TimeoutError as error:
        raise QueryTimeout(f"no answer within {seconds:g} s; ask for less, or later") from error
