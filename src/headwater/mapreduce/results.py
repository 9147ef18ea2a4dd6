"""What comes of mapping a file and of a reduce, whatever engine does it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.store.ids import xxhash64
from headwater.store.occurrences import mixed

if TYPE_CHECKING:
    import pyarrow as pa

    from headwater.store.occurrences import Ids


@dataclass(frozen=True, slots=True)
class Mapped:
    """What came of mapping a file; with a reason, nothing did."""

    records: int = 0
    rejected: int = 0
    letters: list[dict[str, Any]] = field(default_factory=list)
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Reduced:
    """What came of a reduce: rows of `__hw_id`, the key and the result; sets; keys that failed."""

    rows: pa.Table
    sets: pa.ChunkedArray | None
    letters: list[dict[str, Any]] = field(default_factory=list)


def result_ids(sink: str, number: int, keys: Ids) -> Ids:
    """The ids of a reduce's results, by the hashes of their keys."""
    base = xxhash64([sink, number], ["string", "bigint"])
    return mixed(keys, np.full(len(keys), base, np.int64))
