"""What a task tells about the input it read, beside its edges; and the rows that tasks exchange."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.reduce.blocks import NO_TIME, Block
from headwater.reduce.elements import EDGES
from headwater.reduce.packing import packed, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from headwater.reduce.blocks import Bools

EDGES_ROW, FACTS, END, TICK = "edges", "facts", "end", "tick"
"""Rows for a local reducer: a block; `Facts`; the job ended in this part; nothing, just now."""
HOT, RESIDUE, HELD = "hot", "residue", "held"
"""Rows of a local reducer: blocks to go on; what they leave aside; the oldest time it holds."""

LETTERS = pa.schema([("reason", pa.string()), ("where", pa.string()), ("line", pa.string())])
"""Rejected elements: why, where they stood, and what they were."""

SPANS = pa.schema(
    [
        ("execution", pa.int64()),
        ("function", pa.string()),
        ("node", pa.string()),
        ("first", pa.int64()),
        ("last", pa.int64()),
    ]
)
"""One row for each execution: the id of its activity, and when its first and last edge was told."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What came besides edges."""

    elements: int = 0
    """Edges told."""
    size: int = 0
    """Bytes read."""
    filtered: Mapping[str, int] = field(default_factory=dict)
    """Elements of which no dependency is made, by type."""
    letters: pa.Table = field(default_factory=LETTERS.empty_table)
    spans: pa.Table = field(default_factory=SPANS.empty_table)

    @classmethod
    def sum(cls, facts: Sequence[Facts]) -> Facts:
        """All of them together."""
        filtered: Counter[str] = Counter()
        for one in facts:
            filtered.update(one.filtered)
        return cls(
            sum(one.elements for one in facts),
            sum(one.size for one in facts),
            dict(filtered),
            pa.concat_tables([LETTERS.empty_table(), *(one.letters for one in facts)]),
            pa.concat_tables([SPANS.empty_table(), *(one.spans for one in facts)]),
        )

    def less(self, letters: pa.Table) -> Facts:
        """With edges that had been counted as told and are rejected after all."""
        both = pa.concat_tables([self.letters, letters])
        return replace(self, elements=self.elements - letters.num_rows, letters=both)

    def to_bytes(self) -> bytes:
        """The facts as bytes."""
        columns = {name: _whole(self.letters[name]) for name in LETTERS.names}
        columns |= {name: _whole(self.spans[name]) for name in SPANS.names}
        about = {"elements": self.elements, "size": self.size, "filtered": dict(self.filtered)}
        return packed(columns, about)

    @classmethod
    def from_bytes(cls, data: bytes) -> Facts:
        """The facts that were written with `to_bytes`."""
        columns, about = unpacked(data)
        letters = pa.table({name: columns[name] for name in LETTERS.names}, LETTERS)
        spans = pa.table({name: columns[name] for name in SPANS.names}, SPANS)
        return cls(about["elements"], about["size"], about["filtered"], letters, spans)


def letters(reason: str, where: str, lines: Iterable[str]) -> pa.Table:
    """Lines that are rejected for one reason."""
    told = list(lines)
    return pa.table(
        {"reason": [reason] * len(told), "where": [where] * len(told), "line": told}, LETTERS
    )


def as_elements(block: Block, chosen: Bools) -> list[str]:
    """Some edges of a block as elements again: their types by what they join, and their times."""
    rows = block.rows(chosen)
    names = dict(zip(block.ids.tolist(), block.names.to_pylist(), strict=True))
    made = []
    for source, destination, time in zip(
        rows.source.tolist(), rows.destination.tolist(), rows.time.tolist(), strict=True
    ):
        kind = "used" if source & 1 else "wasGeneratedBy" if destination & 1 else "wasDerivedFrom"
        first, second = EDGES[kind]
        element = {"type": kind, first: names.get(source), second: names.get(destination)}
        if time != NO_TIME:
            element["time"] = str(np.datetime64(time, "us")) + "Z"
        made.append(json.dumps(element, ensure_ascii=False))
    return made


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
