"""A job, its store and its checkpoint belong together, and so does the number of its reducers."""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from headwater.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from headwater.capture.checkpoint import Checkpoint

_FILE = "headwater-job.json"
_TEMPORARY = f".{_FILE}.tmp"


@dataclass(frozen=True, slots=True)
class Binding:
    """Which job and store a checkpoint belongs to; `query_id` names its batches in the store."""

    job: str
    store_id: str
    query_id: str
    partitions: int
    """Buckets: state is kept by them, so their number does not change."""
    shuffles: int
    """Tasks of Spark's that the buckets are spread over."""


def bound(
    checkpoint: Checkpoint, job: str, store_id: str, partitions: int | None, cores: int
) -> Binding:
    """The checkpoint's binding, made and written down if it is new; refused if it is another's."""
    file = checkpoint.path / _FILE
    known = _read(file)
    if known is None:
        there = checkpoint.path.iterdir() if checkpoint.path.exists() else iter(())
        if any(found.name != _TEMPORARY for found in there):
            raise RunError(
                f"checkpoint {checkpoint.path} belongs to a query that is not job {job!r}; give an "
                "empty directory"
            )
        number = partitions or cores
        known = Binding(job, store_id, uuid.uuid4().hex, number, min(number, cores))
        _write(file, known)
        return known
    if known.job != job:
        raise RunError(
            f"checkpoint {checkpoint.path} belongs to job {known.job!r}, not {job!r}; give each "
            "job a checkpoint of its own"
        )
    if known.store_id != store_id:
        raise RunError(
            f"checkpoint {checkpoint.path} belongs to another store (job {job!r}); start with the "
            "store it was made with, or with a new checkpoint and a new store"
        )
    if partitions is not None and partitions != known.partitions:
        raise RunError(
            f"job {job!r} has {known.partitions} partitions and can't go on with {partitions}: its "
            "state is kept by them"
        )
    return known


def require_agreement(checkpoint: Checkpoint, job: str, holds: Callable[[int], bool]) -> None:
    """The store is at the checkpoint's last batch, or one ahead of its commit."""
    committed, planned = (_newest(checkpoint, log) for log in ("commits", "offsets"))
    if committed >= 0 and not holds(committed):
        raise RunError(
            f"the store lacks batch {committed} of job {job!r}, which its checkpoint "
            f"{checkpoint.path} has: the store is older; put the matching one back"
        )
    if holds(planned + 1):
        raise RunError(
            f"the store holds batch {planned + 1} of job {job!r}, which its checkpoint "
            f"{checkpoint.path} lacks: the checkpoint is older; put the matching one back"
        )


def _newest(checkpoint: Checkpoint, log: str) -> int:
    """The newest batch in one of Spark's logs; −1 if there is none."""
    folder = checkpoint.path / log
    names = (file.name for file in folder.iterdir()) if folder.exists() else ()
    return max((int(name) for name in names if name.isdigit()), default=-1)


def _read(file: Path) -> Binding | None:
    if not file.exists():
        return None
    try:
        return Binding(**json.loads(file.read_text()))
    except (ValueError, TypeError) as error:
        raise RunError(f"{file} is damaged; start with a new checkpoint and a new store") from error


def _write(file: Path, binding: Binding) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_name(_TEMPORARY)
        temporary.write_text(json.dumps(asdict(binding)))
        temporary.replace(file)
    except OSError as error:
        raise RunError(
            f"checkpoint {file.parent} can't be written ({error.strerror}); choose another place"
        ) from error
