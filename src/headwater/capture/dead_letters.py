"""Dead letters of a source: messages that could not be decoded, in a file for each micro-batch.

The file is written before the batch is committed and under the batch's name: run again after a
crash, the batch writes the same file, so that no letter is lost or doubled.
"""

from __future__ import annotations

import base64
import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.errors import RunError
from headwater.flow.kafka import Topics
from headwater.lowering.kafka import in_topics
from headwater.streams.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from headwater.flow.flow import Flow

log = logging.getLogger("headwater")
FOLDER = "dead_letters"


class DeadLetters:
    """Where the messages go that a flow's sources could not decode."""

    def __init__(self, flow: Flow, store: Path, query_id: str) -> None:
        self._query_id = query_id
        self._given = {
            name
            for name, source in flow.sources.items()
            if in_topics(source) and Topics.of(source).dead_letters
        }
        self._folders = {
            name: Path(Topics.of(source).dead_letters or store / FOLDER / flow.name / name)
            for name, source in flow.sources.items()
            if in_topics(source)
        }

    def require_folders(self, sources: Iterable[str]) -> None:
        """Refuse sources whose letters would be in a store that is no folder."""
        for name in sources:
            if name not in self._given:
                raise RunError(
                    f"source {name!r}: its dead letters are files, which this store has no place "
                    "for; give options={'dead_letters': FOLDER}, or 'fail'"
                )

    def write(self, batch: int, letters: Mapping[str, pa.Table]) -> int:
        """Keep the letters of a batch; how many there are."""
        count = 0
        for name, rows in letters.items():
            if not rows.num_rows:
                continue
            folder = self._folders[name]
            folder.mkdir(parents=True, exist_ok=True)
            lines = [json.dumps(_told(row), ensure_ascii=False) for row in rows.to_pylist()]
            file = folder / f"{self._query_id}-{batch:08}.jsonl"
            write_whole(file, ("\n".join(lines) + "\n").encode())
            count += len(lines)
            what = "message" if len(lines) == 1 else "messages"
            log.warning("source %r: %d %s could not be decoded: %s", name, len(lines), what, file)
        return count


def _told(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    """Bytes as text where they are some, else as base64."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    return value.isoformat() if hasattr(value, "isoformat") else value
