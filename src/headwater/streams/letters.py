"""Dead letters: events that could not be published, with the reason, in a folder of the stream.

What is published under a key has a file by that key: published again, it is the same file, so that
no letter is lost or doubled.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.streams.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from headwater.streams.log import Key

_LONGEST = 2_000
"""Characters of an event that are kept."""


@dataclass(frozen=True, slots=True)
class Letter:
    """An event that could not be published: why, where it was, and its text."""

    reason: str
    where: str
    event: str


def shown(event: Any) -> str:
    """The text of an event, cut if it is long."""
    if isinstance(event, bytes):
        text = event.decode("utf-8", "replace")
    elif isinstance(event, str):
        text = event
    else:
        text = json.dumps(event, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


class Letters:
    """The dead letters of one stream."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "_dead"

    def write(self, letters: Sequence[Letter], key: Key | None = None) -> None:
        """Keep letters; again under the same key, they take the place of the former."""
        if not letters:
            return
        self._folder.mkdir(exist_ok=True)
        name = uuid.uuid4().hex if key is None else _named(key)
        at = time.time_ns() // 1_000_000
        lines = [
            json.dumps(
                {"reason": each.reason, "where": each.where, "event": each.event, "at": at},
                ensure_ascii=False,
            )
            for each in letters
        ]
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
        # The count is in the name: it is asked for often, the letters are not.
        write_whole(self._folder / f"{name}-{len(letters)}.jsonl", data)

    def count(self) -> int:
        """How many letters there are."""
        return sum(int(file.stem.rpartition("-")[2]) for file in self._files())

    def read(self) -> Iterator[dict[str, Any]]:
        """Every letter, oldest file first: `reason`, `where`, `event`, `at`."""
        for file in sorted(self._files(), key=lambda path: path.stat().st_mtime_ns):
            for line in file.read_text("utf-8").split("\n"):
                if line:
                    yield json.loads(line)

    def _files(self) -> list[Path]:
        if not self._folder.is_dir():
            return []
        return [path for path in self._folder.glob("*.jsonl") if not path.name.startswith(".")]


def _named(key: Key) -> str:
    number = "" if key.number is None else f"-{key.number}"
    return hashlib.blake2b(key.text.encode(), digest_size=12).hexdigest() + number
