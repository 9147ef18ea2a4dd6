"""Which row a deduplication kept, as the streaming run did it: the first, while it is remembered.

Of rows that came in one batch any may have been kept, which is Spark's choice: they are told as
tied, and all go on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from headwater.columns import quoted
from headwater.lowering.eager import origin

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from headwater.lowering.traced import Traced

Times = npt.NDArray[np.int64]

KEPT, IS_TIED, OTHER, SURVIVORS = "__hw_kept", "__hw_tied", "__hw_other", "__hw_survivors"
CLAIM, EXPIRY = "__hw_claim", "__hw_expiry"
"""Rows of one claim are one; a row's key is forgotten when the watermark passes its expiry."""
ADDED = (KEPT, IS_TIED, OTHER, SURVIVORS)
NEVER = 1 << 62
_MOST = 5
"""As many survivors are named."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What became of the rows of one key: which went on, which were tied, to which they lost."""

    kept: npt.NDArray[np.bool_]
    tied: npt.NDArray[np.bool_]
    winners: list[list[int]]
    """For each row, those that were kept when it came."""


def claims(batches: Times, keys: Times, expiries: Times, let_in: Times) -> Claims:
    """The rows of one key through their batches; times are in microseconds.

    The second row comes while the first is remembered, the third after that.

    >>> rows = [np.array(v) for v in ([0, 1, 2], [7, 8, 9], [5, 6, 9])]
    >>> claims(*rows, np.array([0, 0, 5])).kept.tolist()
    [True, False, True]
    """
    kept, tied = np.zeros(len(batches), bool), np.zeros(len(batches), bool)
    winners: list[list[int]] = [[] for _ in batches]
    remembered: list[int] = []
    for batch in np.unique(batches):
        limit = let_in[batch] if len(let_in) else 0
        gone = [expiries[i] <= limit for i in remembered]
        if all(gone):
            remembered = []
        arrived = np.flatnonzero(batches == batch)
        if not any(gone) and remembered:
            for i in arrived:
                winners[i] = remembered
            continue
        # None is remembered, or it depends on which one was kept: each new row has a claim.
        _, firsts = np.unique(keys[arrived], return_index=True)
        candidates = [int(i) for i in arrived[np.sort(firsts)]]
        kept[candidates] = True
        tied[candidates] = len(candidates) + len(remembered) > 1
        remembered = [*remembered, *candidates]
        for i in arrived:
            winners[i] = remembered
    return Claims(kept, tied, winners)


def with_survivors(
    rows: Traced, columns: Sequence[str], batch: str, let_in: Times, source: str
) -> DataFrame:
    """Rows with whether each was kept, whether it was tied, and which were kept instead.

    An expiry (µs) that is null is never. `let_in` has the limit for late rows, in milliseconds, by
    batch.
    """
    added = [
        StructField(KEPT, BooleanType()),
        StructField(IS_TIED, BooleanType()),
        StructField(OTHER, StringType()),
        StructField(SURVIVORS, ArrayType(LongType())),
    ]
    schema = StructType([*rows.df.schema.fields, *added])
    origins = {name: origin(name) for name in rows.origins}
    limits = let_in * 1000

    def of_one_key(given: pa.Table) -> pa.Table:
        found = claims(
            given[batch].to_numpy(),
            given[CLAIM].to_numpy(),
            given[EXPIRY].fill_null(NEVER).to_numpy(),
            limits,
        )
        ids = {name: given[column].to_pylist() for name, column in origins.items()}
        words = [_named(ids, kept) for kept in found.winners]
        mine = [_of(ids.get(source), kept) for kept in found.winners]
        made: list[tuple[str, Any, pa.DataType]] = [
            (KEPT, found.kept, pa.bool_()),
            (IS_TIED, found.tied, pa.bool_()),
            (OTHER, words, pa.string()),
            (SURVIVORS, mine, pa.list_(pa.int64())),
        ]
        for name, values, kind in made:
            given = given.append_column(name, pa.array(values, kind))
        return given

    return rows.df.groupBy(*map(quoted, columns)).applyInArrow(of_one_key, schema)


def _ids(value: Any) -> list[int]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _named(ids: Mapping[str, list[Any]], winners: Sequence[int]) -> str:
    """The records behind some rows in words.

    >>> _named({"a": [1, 2], "b": [None, [5, 6]]}, [0, 1])
    'a 1, a 2, b 5, b 6'
    """
    found = {
        f"{source} {i}": None
        for winner in winners
        for source, column in ids.items()
        for i in _ids(column[winner])
    }
    return ", ".join([*list(found)[:_MOST], *(["…"] if len(found) > _MOST else [])])


def _of(column: list[Any] | None, winners: Sequence[int]) -> list[int]:
    """The records of one source behind some rows."""
    return sorted({i for winner in winners for i in _ids(column[winner])}) if column else []
