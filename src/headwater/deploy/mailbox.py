"""Requests of other processes to the host of a folder, and its answers, as files."""

from __future__ import annotations

import json
import os
import time
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from headwater.errors import RunError
from headwater.streams.files import is_held, write_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


HOST = ".host"
"""The file that a host holds while it takes requests."""


class Mailbox:
    """The host's side."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / ".requests"

    def open(self) -> None:
        """Begin anew: nobody waits for what was asked of an earlier host."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self.close()

    def close(self) -> None:
        """Remove all requests and answers."""
        for path in self._folder.glob("*.json"):
            path.unlink(missing_ok=True)

    def requests(self) -> list[dict[str, Any]]:
        """What was asked, in order."""
        found = []
        for path in sorted(self._folder.glob("*.ask.json")):
            with suppress(FileNotFoundError, ValueError):
                found.append({**json.loads(path.read_bytes()), "id": path.name.split(".")[0]})
        return found

    def tell(self, request: dict[str, Any], text: str) -> None:
        """Say how it goes."""
        write_json(self._folder / f"{request['id']}.told.json", {"doing": text}, sync=False)

    def answer(self, request: dict[str, Any], answer: dict[str, Any]) -> None:
        """What came of it."""
        write_json(self._folder / f"{request['id']}.answer.json", answer, sync=False)
        (self._folder / f"{request['id']}.ask.json").unlink(missing_ok=True)


def is_hosted(folder: Path) -> bool:
    """Whether a host runs the flows of a folder."""
    return is_held(folder / HOST)


def ask(
    folder: Path,
    action: str,
    flow: str,
    /,
    *,
    tell: Callable[[str], None] | None = None,
    **details: Any,
) -> dict[str, Any]:
    """Have the host of a folder do something, and wait for it; raises what it says went wrong."""
    box = folder / ".requests"
    box.mkdir(parents=True, exist_ok=True)
    name = f"{time.time_ns():020d}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
    write_json(box / f"{name}.ask.json", {"action": action, "flow": flow, **details}, sync=False)
    said = None
    while True:
        with suppress(FileNotFoundError, ValueError):
            answer = json.loads((box / f"{name}.answer.json").read_bytes())
            for path in box.glob(f"{name}.*"):
                path.unlink(missing_ok=True)
            if "error" in answer:
                raise RunError(str(answer["error"]))
            done: dict[str, Any] = answer["done"]
            return done
        with suppress(FileNotFoundError, ValueError):
            told = json.loads((box / f"{name}.told.json").read_bytes())["doing"]
            if told != said and tell is not None:
                tell(told)
            said = told
        if not is_hosted(folder):
            raise RunError(
                f"the process that runs the flows of {folder} ended meanwhile; start it again with "
                "`headwater flow deploy` or `headwater flow run`"
            )
        time.sleep(0.05)
