"""Many clients of a web service, as light as they can be: on two cores they compete with it."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *([0-9]+)\r\n")


@dataclass(slots=True)
class Outcome:
    """What came of some requests: how long each took, and the statuses that were not 2xx."""

    seconds: float = 0.0
    taken: list[float] = field(default_factory=list)
    failed: dict[int, int] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Requests a second that were answered as asked."""
        return (len(self.taken) - sum(self.failed.values())) / self.seconds

    def ms(self, quantile: float) -> float:
        """A quantile of the times in milliseconds."""
        return float(np.quantile(self.taken, quantile)) * 1e3


def request(
    method: str, path: str, port: int, body: bytes = b"", kind: str = "", token: str | None = None
) -> bytes:
    """A request as it is sent."""
    head = [f"{method} {path} HTTP/1.1", f"host: 127.0.0.1:{port}", "connection: keep-alive"]
    if token is not None:
        head.append(f"authorization: Bearer {token}")
    if body:
        head += [f"content-type: {kind}", f"content-length: {len(body)}"]
    return ("\r\n".join(head) + "\r\n\r\n").encode() + body


class _Client(asyncio.Protocol):
    """One connection; it asks again when it has been answered."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._got = bytearray()
        self._size = -1
        self._answer: asyncio.Future[int] | None = None

    @classmethod
    async def connected(cls, port: int) -> _Client:
        """A client that is connected."""
        loop = asyncio.get_running_loop()
        _, client = await loop.create_connection(cls, "127.0.0.1", port)
        return client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._got += data
        if self._size < 0:
            end = self._got.find(b"\r\n\r\n")
            if end < 0:
                return
            self._size = end + 4 + int(_LENGTH.search(self._got, 0, end + 2)[1])  # type: ignore[index]
        if len(self._got) >= self._size and self._answer is not None:
            status = int(self._got[9:12])
            self._got.clear()
            self._size = -1
            self._answer.set_result(status)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("the service hung up"))

    def ask(self, data: bytes) -> asyncio.Future[int]:
        """Send a request; the status of its answer."""
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(data)
        return self._answer

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


def at_once(port: int, clients: int, seconds: float, make: Callable[[int, int], bytes]) -> Outcome:
    """Each client sends a request as soon as the one before is answered."""
    return asyncio.run(_at_once(port, clients, seconds, make))


async def _at_once(
    port: int, clients: int, seconds: float, make: Callable[[int, int], bytes]
) -> Outcome:
    outcome = Outcome()
    made = [await _Client.connected(port) for _ in range(clients)]
    until = time.perf_counter() + seconds

    async def work(number: int) -> None:
        client, turn = made[number], 0
        try:
            while (begun := time.perf_counter()) < until:
                status = await client.ask(make(number, turn))
                _note(outcome, time.perf_counter() - begun, status)
                turn += 1
        finally:
            client.close()

    begun = time.perf_counter()
    await asyncio.gather(*(work(number) for number in range(clients)))
    outcome.seconds = time.perf_counter() - begun
    return outcome


def at_rate(port: int, rate: float, requests: Sequence[bytes], clients: int = 64) -> Outcome:
    """Requests at fixed times, whether or not earlier ones were answered.

    A request's time is counted from when it should have been sent: one that waits for others has
    waited.
    """
    return asyncio.run(_at_rate(port, rate, requests, clients))


async def _at_rate(port: int, rate: float, requests: Sequence[bytes], clients: int) -> Outcome:
    outcome = Outcome()
    free: asyncio.Queue[_Client] = asyncio.Queue()
    made = [await _Client.connected(port) for _ in range(clients)]
    for client in made:
        free.put_nowait(client)

    async def send(data: bytes, due: float) -> None:
        client = await free.get()
        status = await client.ask(data)
        _note(outcome, time.perf_counter() - due, status)
        free.put_nowait(client)

    begun = time.perf_counter()
    tasks = []
    for number, data in enumerate(requests):
        due = begun + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(send(data, due)))
    await asyncio.gather(*tasks)
    outcome.seconds = time.perf_counter() - begun
    for client in made:
        client.close()
    return outcome


def _note(outcome: Outcome, seconds: float, status: int) -> None:
    outcome.taken.append(seconds)
    if not 200 <= status < 300:
        outcome.failed[status] = outcome.failed.get(status, 0) + 1
