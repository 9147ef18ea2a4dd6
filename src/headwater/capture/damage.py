"""Whether Spark failed on a damaged file of its checkpoint, in one line that says what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.spark_errors import one_line

if TYPE_CHECKING:
    from pathlib import Path

_READING = re.compile(
    r"at org\.apache\.spark\.sql\.execution\.streaming\.[\w.$]*"
    r"(?:state\.|checkpointing\.|MetadataLog|StreamMetadata|FileStreamLog|OffsetSeq|CommitLog)"
)
"""Who reads a checkpoint, in a stack of calls."""
_WRONG = re.compile(
    r"checksum|incomplete log|malformed|invalid log|unexpected (?:character|end)|expected but|"
    r"Json\w*Exception|MappingException|EOFException|premature|StreamCorrupted|is corrupted|"
    r"CANNOT_LOAD_STATE_STORE|STATE_STORE_\w*SCHEMA",
    re.IGNORECASE,
)
"""What they say of a file that is not as they wrote it."""
_SHOWN = 160


def damaged_checkpoint(error: BaseException, checkpoint: Path) -> str | None:
    """What to say of a failure that comes of a damaged checkpoint; None of any other."""
    trace = f"{error}\n{getattr(error, '_stackTrace', '') or ''}"
    cause = trace.rsplit("Caused by: ", 1)[-1]
    # Spark's innermost call counts: further out, every task with state has calls of these kinds.
    inner = next((line for line in cause.splitlines() if "at org.apache.spark." in line), "")
    if not _READING.search(inner) or not _WRONG.search(cause.split("\n\tat ", 1)[0]):
        return None
    said = one_line(error)
    if len(said) > _SHOWN:
        said = f"…{said[-_SHOWN:]}"
    return (
        f"checkpoint {checkpoint} is damaged ({said}); put a copy of it back, or start with a new "
        "checkpoint and a new store"
    )
