"""`headwater serve` in a process of its own, to be killed, and a client that does not give up."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TOKEN = "a-token-for-restarts"


class Served:
    """The service of a folder, at one address however often it is started."""

    def __init__(
        self, home: Path, log: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self.home, self.log = home, log or home / "serve.log"
        self.environment = dict(environment or {})
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Its process, while that runs."""
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    def start(self) -> None:
        """Start it, and wait until it answers."""
        folders = ("--flows", str(self.home / "flows"), "--streams", str(self.home / "streams"))
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "headwater", "serve", *folders, "--port", str(self.port)],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "HEADWATER_TOKEN": TOKEN, **self.environment},
                start_new_session=True,
            )
        until = time.monotonic() + 120
        while time.monotonic() < until and self._process.poll() is None:
            try:
                self.call("GET", "/api/health")
            except OSError:
                time.sleep(0.1)
            else:
                return
        raise AssertionError(f"the service did not start: {self.log.read_text()[-2_000:]}")

    def kill(self) -> None:
        """`kill -9` to it and to its Spark."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> int:
        """End it as a person does; its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(60)

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        """One request; raises OSError where there is no answer, AssertionError for a bad one."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            data=data,
            method=method,
            headers={"authorization": f"Bearer {TOKEN}", "content-type": kind},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            raise AssertionError(f"{method} {path}: {error.code} {text}") from error

    def insist(self, method: str, path: str, body: Any, kind: str = "application/json") -> Any:
        """The same again and again, until it is answered."""
        until = time.monotonic() + 180
        while True:
            try:
                return self.call(method, path, body, kind)
            except OSError:
                assert time.monotonic() < until, "no answer"
                time.sleep(0.1)

    def wait_for(self, path: str, enough: Any, timeout: float = 180.0) -> Any:
        """Ask until the answer is what is waited for."""
        until = time.monotonic() + timeout
        while not enough(told := self.call("GET", path)):
            assert time.monotonic() < until, f"{path}: {told}"
            time.sleep(0.2)
        return told
