"""Many clients of a web service, as light as they can be: on two cores they compete with it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


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


class _Client:
    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, data: bytes) -> int:
        """Send a request, read the answer; its status."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(data)
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        size = next(int(line[15:]) for line in lines if line[:15].lower() == b"content-length:")
        await reader.readexactly(size)
        return int(lines[0].split()[1])

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


def at_once(port: int, clients: int, seconds: float, make: Callable[[int, int], bytes]) -> Outcome:
    """Each client sends a request as soon as the one before is answered."""
    return asyncio.run(_at_once(port, clients, seconds, make))


async def _at_once(
    port: int, clients: int, seconds: float, make: Callable[[int, int], bytes]
) -> Outcome:
    outcome = Outcome()
    until = time.perf_counter() + seconds

    async def work(number: int) -> None:
        client, turn = _Client(port), 0
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
    made = [_Client(port) for _ in range(clients)]
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
