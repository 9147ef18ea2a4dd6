"""The last events of the named streams that a flow reads: evidence for what it says of them."""

from __future__ import annotations

import base64
import json
import math
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any

from headwater import streams
from headwater.compose.kinds import Source
from headwater.errors import UnknownStream

if TYPE_CHECKING:
    import os

    from headwater.compose.composition import Composition


def last_events(
    composition: Composition, folder: str | os.PathLike[str] | None = None
) -> dict[str, str]:
    """The last event of each stream that a source reads, as JSON; of no other, nor of empty ones.

    Streams that the flow itself makes are left out: those that are there may be of another version.
    """
    registry = streams.open(folder)
    there = set(registry.names())
    found: dict[str, str] = {}
    for node in composition.nodes.values():
        if isinstance(node, Source) and node.stream in there:
            try:
                last = registry.log(node.stream).last()
            except (UnknownStream, streams.StreamRemoved):
                continue  # removed just now
            if last is not None:
                event = _plain(last.table.to_pylist()[0])
                found[node.stream] = json.dumps(event, ensure_ascii=False)
    return found


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(name): _plain(item) for name, item in value.items()}
        case list() if value and all(isinstance(item, tuple) for item in value):  # Arrow's map
            return {str(name): _plain(item) for name, item in value}
        case list():
            return [_plain(item) for item in value]
        case datetime() | date() | time():
            return value.isoformat()
        case bytes():
            try:
                return value.decode()  # it may be a document
            except UnicodeDecodeError:
                return base64.b64encode(value).decode()
        case float() if not math.isfinite(value):
            return str(value)
        case None | bool() | int() | float() | str():
            return value
    return str(value)
