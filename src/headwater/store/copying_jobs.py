"""Foreign jobs when a store is copied: of complete ones, all that is settled."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.errors import StoreError
from headwater.store.jobs.register import FINISHED
from headwater.store.lake.jobs import HELD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.store.reader import OpenReader

_KEYS = {"entities": "id", "dependencies": "output", "dependencies_by_input": "input"}
"""Relations that may be large, and the column by which they are sorted."""
_FRESH = {"entities": "fresh_entities"} | dict.fromkeys(
    ("dependencies", "dependencies_by_input"), "fresh_dependencies"
)


def require_settled(reader: OpenReader) -> bool:
    """Refuse jobs of which more than their dependencies would have to go along; if there are any.

    The edges of an open job are its reducer's, and those of one that is kept in full have tables of
    their own.
    """
    rows = reader.query("SELECT job, state, settings FROM jobs").to_pylist()
    for row in rows:
        if row["state"] != FINISHED:
            raise StoreError(
                f"job {row['job']!r} is open, which a copy can't go on with; complete it with "
                "--finish and copy then"
            )
        if json.loads(row["settings"])["keep"] == "full":
            raise StoreError(
                f"of job {row['job']!r} all edges are kept (keep='full'), which can't be copied; "
                "nothing is copied"
            )
    return bool(rows)


def job_rows(reader: OpenReader, at_once: int, *, to_lake: bool) -> Iterator[tuple[str, pa.Table]]:
    """The relations of jobs with their rows, so many at a time."""
    jobs = reader.query("SELECT * FROM jobs ORDER BY job_no")
    told = [_settings(text, to_lake) for text in jobs["settings"].to_pylist()]
    place = jobs.column_names.index("settings")
    yield "jobs", jobs.set_column(place, "settings", pa.array(told, pa.string()))
    yield "job_batches", reader.query("SELECT * FROM job_batches ORDER BY job_no, batch")
    for relation, key in _KEYS.items():
        columns = ", ".join(reader.query(f"SELECT * FROM {relation} LIMIT 0").column_names)
        whole = (
            f"(SELECT {columns} FROM {relation} UNION ALL SELECT {columns} FROM {_FRESH[relation]})"
        )
        for condition in _ranges(reader, whole, key, at_once):
            yield (
                relation,
                reader.query(f"SELECT * FROM {whole} WHERE {condition} ORDER BY {key}"),
            )


def _ranges(reader: OpenReader, rows: str, key: str, at_once: int) -> Iterator[str]:
    """Conditions on a key, each for about so many rows, that together have all of them."""
    ends = reader.query(
        f"SELECT DISTINCT {key} AS k FROM (SELECT {key}, row_number() OVER (ORDER BY {key}) AS n "
        f"FROM {rows}) WHERE n % {at_once} = 0 ORDER BY k"
    )["k"].to_pylist()
    for low, high in zip([None, *ends], [*ends, None], strict=True):
        above = "true" if low is None else f"{key} > {low}"
        yield above if high is None else f"{above} AND {key} <= {high}"


def _settings(text: str, to_lake: bool) -> str:
    settings = json.loads(text)
    settings.pop(HELD, None)
    return json.dumps({**settings, HELD: False} if to_lake else settings)
