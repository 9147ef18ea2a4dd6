"""How long a store remembers: results older than an age, or beyond a size, are forgotten.

Forgetting goes batch by batch, the oldest first: a batch's results go with their edges and
intervals, and then the kept records that no result has any more. What says that a batch was there
stays, so that a flow goes on as before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from headwater.errors import StoreError
from headwater.store.batch import ID, SEQ

if TYPE_CHECKING:
    import duckdb

    from headwater.store.catalog import Catalog, Source
    from headwater.store.reader import Reader

_UNITS = {"minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_SIZES = {"MB": 10**6, "GB": 10**9, "TB": 10**12, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was forgotten."""

    batches: int = 0
    results: int = 0
    edges: int = 0
    records: int = 0


def age(text: str) -> timedelta:
    """An age in words.

    >>> age("30 days"), age("1 hour")
    (datetime.timedelta(days=30), datetime.timedelta(seconds=3600))
    """
    found = re.fullmatch(r"\s*(\d+)\s*(minute|hour|day|week)s?\s*", text)
    if found is None:
        raise StoreError(f"{text!r} is no age; write it like '30 days' or '12 hours'")
    return timedelta(seconds=int(found[1]) * _UNITS[found[2]])


def size(text: str) -> int:
    """A size in words.

    >>> size("10 GB"), size("512MiB")
    (10000000000, 536870912)
    """
    found = re.fullmatch(r"\s*(\d+)\s*([MGT]i?B)\s*", text)
    if found is None:
        raise StoreError(f"{text!r} is no size; write it like '10 GB' or '512MiB'")
    return int(found[1]) * _SIZES[found[2]]


def cut(
    reader: Reader, *, older_than: timedelta | None, most: int | None, used: int
) -> tuple[int, Forgotten]:
    """The last batch to be forgotten, 0 if none, and what goes with it, apart from records.

    `used` is what the store takes; bytes are shared out by results and edges.
    """
    rows = reader.query(
        "SELECT seq, committed_at, results, edges FROM batches "
        "WHERE seq > (SELECT coalesce(max(value::BIGINT), 0) FROM meta WHERE key = 'forgotten') "
        "ORDER BY seq"
    ).to_pylist()
    weights = [row["results"] + row["edges"] for row in rows]
    whole, before = sum(weights), 0
    oldest = None if older_than is None else datetime.now(UTC) - older_than
    last, gone = 0, Forgotten()
    for row, weight in zip(rows, weights, strict=True):
        too_old = oldest is not None and row["committed_at"] < oldest
        left = used * (whole - before) / whole if whole else 0
        if not (too_old or (most is not None and left > most)):
            break
        before += weight
        last = row["seq"]
        gone = Forgotten(gone.batches + 1, gone.results + row["results"], gone.edges + row["edges"])
    return last, gone


def forget(connection: duckdb.DuckDBPyConnection, catalog: Catalog, last: int) -> int:
    """Delete what the batches up to `last` brought; how many kept records went with it."""
    for sink in catalog.sinks:
        connection.execute(f"DELETE FROM result_{sink.no} WHERE {SEQ} <= {last}").fetchall()
    for relation in ("edges", "edges_by_record", "results_by_id", "spans"):
        connection.execute(f"DELETE FROM {relation} WHERE seq <= {last}").fetchall()
    records = 0
    for source in catalog.sources:
        if source.kept and all_eager(catalog, source):
            [(gone,)] = connection.execute(
                f"DELETE FROM record_{source.no} WHERE {SEQ} <= {last} AND {ID} NOT IN "
                f"(SELECT source_id FROM edges WHERE source_no = {source.no})"
            ).fetchall()
            records += gone
    # A vertex stays while it may still get an edge, or has one that is remembered.
    connection.execute(
        f"DELETE FROM vertices v WHERE seq <= {last} AND EXISTS (SELECT 1 FROM labels l "
        "WHERE l.source_no = v.source_no AND l.id = v.id) AND NOT EXISTS (SELECT 1 FROM edges e "
        "WHERE e.source_no = v.source_no AND e.source_id = v.id)"
    ).fetchall()
    connection.execute(
        "DELETE FROM labels l WHERE NOT EXISTS (SELECT 1 FROM vertices v "
        "WHERE v.source_no = l.source_no AND v.id = l.id)"
    ).fetchall()
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('forgotten', ?)", [str(last)])
    return records


def all_eager(catalog: Catalog, source: Source) -> bool:
    """Whether no result of a source's records needs a replay, which would read them."""
    return not any(sink.is_lazy for sink in catalog.sinks_of(source))
