"""A run of a flow: waiting for it, stopping it, and its error in one line."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from headwater.errors import HeadwaterError, RunError
from headwater.spark_errors import one_line

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from headwater.capture.sink import CaptureSink


class Run:
    """A flow at work. `wait()` until it ends, `stop()` to end it; also a context manager."""

    def __init__(self, flow: str, sink: CaptureSink, query: StreamingQuery | None) -> None:
        self.flow = flow
        self.query = query
        self._sink = sink
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

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        self._stop()
        self._ended.wait()
        if kind is None:
            self._raise()

    def _stop(self) -> None:
        if self.query is not None and self.active:
            self._sink.take_no_more()
            self.query.stop()

    def _watch(self) -> None:
        assert self.query is not None
        try:
            self.query.awaitTermination()
        except Exception as error:  # noqa: BLE001
            self._sink.fail(error)
        finally:
            self._end()

    def _end(self) -> None:
        try:
            self._sink.close()
        finally:
            self._ended.set()

    def _raise(self) -> None:
        failure = self._sink.failure
        if failure is None:
            return
        if isinstance(failure, HeadwaterError):
            raise failure
        raise RunError(f"flow {self.flow!r} failed: {one_line(failure)}") from failure

    def __repr__(self) -> str:
        return f"Run({self.flow!r}, {'active' if self.active else 'ended'})"
