"""A small HTTP service on loopback for tests: what it is sent, and what it shall answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, bytes]


def ok(answer: Any) -> Reply:
    """A JSON answer."""
    return 200, json.dumps(answer).encode()


@dataclass
class Endpoint:
    """A running service; `seen` are the objects that were posted, `headers` those of the last."""

    url: str = ""
    seen: list[Any] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)


@contextmanager
def serving(reply: Callable[[Any, int], Reply]) -> Iterator[Endpoint]:
    """A service; `reply` gets what was posted, and how often the same was before."""
    endpoint, lock = Endpoint(), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                before = endpoint.seen.count(event)
                endpoint.seen.append(event)
                endpoint.headers = dict(self.headers)
            status, body = reply(event, before)
            try:
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                pass  # Who asked has given up.

        def log_message(self, *_: Any) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    endpoint.url = f"http://127.0.0.1:{server.server_port}/score"
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
