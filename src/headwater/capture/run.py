"""A run of a flow: waiting for it, stopping it, and its error in one line."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

from headwater import kafka_errors
from headwater.capture.damage import damaged_checkpoint
from headwater.errors import HeadwaterError, RunError
from headwater.spark_errors import one_line

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from headwater.capture.sink import CaptureSink


_LOOK = 1
"""Seconds between two looks at whether sources are silent."""
_GLANCE, _GLANCES = 0.02, 20
"""Seconds between two looks at what a query does, and how many of them."""


class Launch(Protocol):
    """What starts a flow's query again."""

    def finish(self) -> None:
        """Run the flow's last batch."""

    def advance(self, watermark: int) -> tuple[CaptureSink, StreamingQuery]:
        """Go on with a later watermark (ms)."""


class Run:
    """A flow at work. `wait()` until it ends, `stop()` to end it; also a context manager."""

    def __init__(
        self,
        flow: str,
        sink: CaptureSink,
        query: StreamingQuery | None,
        launch: Launch | None = None,
    ) -> None:
        self.flow = flow
        self.query = query
        self._sink = sink
        self._launch = launch
        self._changing = threading.Lock()
        self._stopped = False
        self._ended = threading.Event()
        if query is None:
            self._end()
        else:
            threading.Thread(target=self._watch, name=f"headwater-{flow}", daemon=True).start()

    @property
    def active(self) -> bool:
        """Whether the run goes on."""
        return not self._ended.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most `timeout` seconds; True when it has ended. Raises its error."""
        ended = self._ended.wait(timeout)
        if ended:
            self._raise()
        return ended

    def stop(self) -> None:
        """End the run after the batch at hand; a later start goes on from there."""
        self._stop()
        self.wait()

    def finish(self) -> None:
        """End the flow for good: every window closes, and every record is past.

        One last batch runs with a watermark after every time, so that what the steps hold is given
        out. The flow can't be started again with this store and checkpoint.
        """
        self._stop()
        self.wait()
        if self._launch is None or self._sink.finishing:
            return
        self._launch.finish()
        self._launch = None

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        self._stop()
        self._ended.wait()
        if kind is None:
            self._raise()

    def _stop(self) -> None:
        with self._changing:
            self._stopped = True
            if self.query is not None and self.active:
                self._sink.take_no_more()
                self.query.stop()

    def _watch(self) -> None:
        try:
            while not self._awaited():
                self._advance()
        except Exception as error:  # noqa: BLE001
            self._sink.fail(error)
        finally:
            self._end()

    def _awaited(self) -> bool:
        """Wait for the query's end; False when it is time to see whether sources are silent."""
        assert self.query is not None
        if self._sink.silence is None:
            self.query.awaitTermination()
            return True
        return bool(self.query.awaitTermination(_LOOK))

    def _advance(self) -> None:
        """Start the query anew with a later watermark, if silence allows one."""
        if self._launch is None or self._sink.silence is None:
            return
        if not self._is_seen_waiting():
            # Starting and working take their time, and what comes meanwhile is not heard yet.
            self._sink.silence.advanced()
            return
        if (watermark := self._sink.idle_watermark()) is None:
            return
        with self._changing:
            if self._stopped:
                return
            assert self.query is not None
            self._sink.take_no_more()
            self.query.stop()
            self._sink.close()
            self._sink, self.query = self._launch.advance(watermark)

    @property
    def is_waiting(self) -> bool:
        """Whether the query has looked for something to do since its last batch, and found nothing.

        Between a batch and one without data that closes its windows no batch runs either.
        """
        return self.query is not None and self.query.status["message"].startswith("Waiting")

    def _is_seen_waiting(self) -> bool:
        """Whether the query is waiting: it looks for data in between."""
        for _ in range(_GLANCES):
            if self.is_waiting:
                return True
            time.sleep(_GLANCE)
        return False

    def _end(self) -> None:
        try:
            self._sink.close()
        finally:
            self._sink.listener.ended(self._sink.failure)
            self._ended.set()

    def _raise(self) -> None:
        failure = self._sink.failure
        if failure is None:
            return
        if isinstance(failure, HeadwaterError):
            raise failure
        place = self._sink.checkpoint
        said = (
            kafka_errors.explained(failure)
            or (damaged_checkpoint(failure, place.path) if place is not None else None)
            or one_line(failure)
        )
        raise RunError(f"flow {self.flow!r} failed: {said}") from failure

    def __repr__(self) -> str:
        return f"Run({self.flow!r}, {'active' if self.active else 'ended'})"
