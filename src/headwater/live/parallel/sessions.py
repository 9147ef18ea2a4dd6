"""A shard of session keys: which records the sessions of its keys hold, and until when."""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.live.parallel import rows as kinds
from headwater.live.parallel.rows import by_shard, loaded, numbers
from headwater.live.sessions import Held
from headwater.store.lake.tasks import data_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from headwater.flow.reach import Reach
    from headwater.live.graph import Ints, Moment
    from headwater.store.lake.place import Place

COLUMNS = "shard int, step smallint, source_no smallint, key bigint, time bigint, id bigint"
"""What a shard is given; a row without a step only tells that the shard is asked."""
HELD = "source_no smallint, kind tinyint, id bigint, value bigint, told string"
"""What it gives back."""
FOLDER = "open"
_STATE = ("step", "source_no", "key", "time", "id", "end", "closed")


@dataclass(frozen=True, slots=True)
class Sessions:
    """Takes the rows that enter the sessions of some shards of keys.

    `steps` has, by number, the step and the reach of each source whose records it holds.
    """

    place: Place
    folder: str
    seq: int
    at: Moment
    steps: tuple[tuple[str, Mapping[int, Reach]], ...]
    files: Mapping[str, Sequence[str]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Advance shards; who is held, and what was written."""
        for shard, rows in by_shard(batches):
            yield from self._shard(shard, rows).to_batches()

    def _shard(self, shard: int, came: pa.Table) -> pa.Table:
        before = loaded(self.place, self.folder, self.files.get(str(shard), ()))
        kept, given = [], []
        for number, (step, reaches) in enumerate(self.steps):
            for source_no, reach in reaches.items():
                held = _held(before, number, source_no).advanced(
                    _rows(came, number, source_no),
                    reach.sessions[step],
                    reach,
                    max(self.at.watermark, 0),
                    max(self.at.previous, 0),
                )
                many = len(held.id)
                if not many:
                    continue
                until = held.until(reach.sessions[step], reach)
                given.append(_given(source_no, kinds.HELD, held.id, until))
                kept.append(
                    pa.table(
                        [
                            np.full(many, number, np.int16),
                            np.full(many, source_no, np.int16),
                            *held.columns(),
                        ],
                        names=_STATE,
                    )
                )
        if kept:
            filesystem, root = self.place.filesystem()
            path = f"{self.seq}-{shard}-{uuid.uuid4().hex}.parquet"
            relation = f"{self.folder}/{FOLDER}"
            file = data_file(filesystem, root, relation, path, pa.concat_tables(kept))
            told = json.dumps(asdict(replace(file, stats={"shard": shard})))
            given.append(_given(0, kinds.TOLD, np.zeros(1, np.int64), np.zeros(1, np.int64), told))
        return pa.concat_tables(given) if given else _SCHEMA.empty_table()


_SCHEMA = pa.schema(
    [
        ("source_no", pa.int16()),
        ("kind", pa.int8()),
        ("id", pa.int64()),
        ("value", pa.int64()),
        ("told", pa.string()),
    ]
)


def _given(source_no: int, kind: int, ids: Ints, values: Ints, told: str | None = None) -> pa.Table:
    many = len(ids)
    return pa.table(
        [
            np.full(many, source_no, np.int16),
            np.full(many, kind, np.int8),
            ids,
            values,
            pa.array([told] * many, pa.string()),
        ],
        schema=_SCHEMA,
    )


def _rows(came: pa.Table, step: int, source_no: int) -> tuple[Ints, Ints, Ints]:
    own = numbers(came, "step") == step
    own &= numbers(came, "source_no") == source_no
    return numbers(came, "key")[own], numbers(came, "time")[own], numbers(came, "id")[own]


def _held(state: pa.Table | None, step: int, source_no: int) -> Held:
    if state is None:
        return Held.none()
    own = (numbers(state, "step") == step) & (numbers(state, "source_no") == source_no)
    key, time, id_, end = (numbers(state, name) for name in _STATE[2:6])
    return Held(key, time, id_, end, state["closed"].to_numpy(zero_copy_only=False)).only(own)
