"""Running the service: the host of flows and the web server, in one process, until told to end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import sys
import threading
from typing import TYPE_CHECKING, Any

import uvicorn

from headwater.errors import HeadwaterError
from headwater.server.app import application

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.server.service import Service

GRACE = 3
"""Seconds that requests have to end when the service does."""


def listening(address: str, port: int) -> socket.socket:
    """A socket that listens; 0 is any port that is free."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # With its protocol said: asyncio then sends at once, and does not wait for more to send.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((address, port))
        made.listen(1_024)
    except OSError as error:
        made.close()
        raise HeadwaterError(
            f"{address}:{port} can't be served: {error.strerror}; give another --port, or end "
            "what has it"
        ) from error
    return made


@contextlib.contextmanager
def serving(service: Service, made: socket.socket) -> Iterator[str]:
    """Serve in a thread; yields the address."""
    config = uvicorn.Config(
        application(service),
        access_log=False,
        log_level="warning",
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        limit_concurrency=None,
        h11_max_incomplete_event_size=64 << 10,
    )
    # Threads that compute hold the interpreter for 5 ms else, and each answer waits for several.
    sys.setswitchinterval(0.001)
    # What is there now stays: to look through it for garbage again and again stops every answer.
    gc.collect()
    gc.freeze()
    server = _Server(config)
    thread = threading.Thread(
        target=lambda: asyncio.run(server.serve([made])), name="headwater-serve", daemon=True
    )
    thread.start()
    try:
        yield _address(made)
    finally:
        service.ending.set()
        server.should_exit = True
        thread.join(GRACE + 5)
        service.close()
        made.close()


class _Server(uvicorn.Server):
    """A server that leaves the process's signals alone: whoever runs it ends it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        """Nothing is captured."""
        yield


def _address(made: socket.socket) -> str:
    host, port = made.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
