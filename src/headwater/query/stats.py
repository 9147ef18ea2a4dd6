"""What a store takes in its file: by sink, and by relation with the encodings that DuckDB chose.

Bytes are those of the file. Rows that came since DuckDB's last checkpoint are in its log and in
memory only; they are counted as rows, but have no bytes and no encoding yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.store.lake.reader import LakeReader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.store.catalog import Catalog
    from headwater.store.reader import Reader

PLAIN = 8
"""Bytes of an id that is stored as it is."""

EDGES = ("edges", "edges_by_record")
"""The relations that hold the provenance sets, once in each direction."""

SPANS = "spans"
"""The relation that holds intervals in place of sets."""

SINKS = pa.schema(
    [
        ("flow", pa.string()),
        ("sink", pa.string()),
        ("capture", pa.string()),
        ("results", pa.int64()),
        ("edges", pa.int64()),
        ("bytes_results", pa.int64()),
        ("bytes_edges", pa.int64()),
        ("bytes_per_result", pa.float64()),
        ("bytes_per_set", pa.float64()),
        ("bytes_per_edge", pa.float64()),
        ("ratio", pa.float64()),
    ]
)

RELATIONS = pa.schema(
    [
        ("relation", pa.string()),
        ("of", pa.string()),
        ("rows", pa.int64()),
        ("rows_in_file", pa.int64()),
        ("bytes", pa.int64()),
        ("bytes_per_row", pa.float64()),
        ("ratio", pa.float64()),
        ("encodings", pa.map_(pa.string(), pa.list_(pa.string()))),
    ]
)


@dataclass(frozen=True, slots=True)
class Stats:
    """The size of a store.

    `sinks` has a row for each sink: `bytes_per_result` is a result's own row, `bytes_per_set` its
    provenance, `ratio` what an edge takes compared with an id of eight bytes. `relations` has a row
    for each relation, with the encodings of each column. A figure is null where nothing is in the
    file yet.
    """

    sinks: pa.Table
    relations: pa.Table
    bytes_file: int
    bytes_free: int


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation's rows, and what those that are in the file take there."""

    name: str
    rows: int = 0
    stored: int = 0
    bytes: int = 0

    @property
    def per_row(self) -> float | None:
        """Bytes per row of those in the file."""
        return self.bytes / self.stored if self.stored else None


def stats(reader: Reader, catalog: Catalog) -> Stats:
    """The size of the store, as DuckDB's storage information has it, or a lake's tables."""
    if isinstance(reader, LakeReader):
        tables = {name: Relation(name, n, n, size) for name, n, size in reader.sizes()}
        whole = sum(relation.bytes for relation in tables.values())
        return Stats(_sinks(reader, catalog, tables), _relations(catalog, tables, ()), whole, 0)
    names = [
        str(row["table_name"])
        for row in reader.query(
            "SELECT table_name FROM duckdb_tables() WHERE NOT internal AND NOT temporary "
            "AND database_name = current_database() ORDER BY table_name"
        ).to_pylist()
    ]
    [file] = reader.query(
        "SELECT block_size, total_blocks, free_blocks FROM pragma_database_size() "
        "WHERE database_name = current_database()"
    ).to_pylist()
    sizes = reader.query(_sizes(names, file["block_size"])).to_pylist()
    found = {row["name"]: Relation(**row) for row in sizes}
    relations = {name: found.get(name, Relation(name)) for name in names}
    return Stats(
        _sinks(reader, catalog, relations),
        _relations(catalog, relations, reader.query(_encodings(names)).to_pylist()),
        file["total_blocks"] * file["block_size"],
        file["free_blocks"] * file["block_size"],
    )


def shared(total: int, weights: Sequence[int]) -> list[int]:
    """Whole parts of `total` in proportion to the weights; their sum is `total`.

    >>> shared(100, [1, 1, 1]), shared(100, [0, 0])
    ([33, 33, 34], [0, 0])
    """
    whole = sum(weights)
    bounds = [total * upto // whole if whole else 0 for upto in accumulate(weights, initial=0)]
    return [after - before for before, after in pairwise(bounds)]


def _sinks(reader: Reader, catalog: Catalog, relations: Mapping[str, Relation]) -> pa.Table:
    counted = reader.query("SELECT sink_no, count(*) AS n FROM edges GROUP BY sink_no").to_pylist()
    edges = {row["sink_no"]: row["n"] for row in counted}
    counted = reader.query("SELECT sink_no, count(*) AS n FROM spans GROUP BY sink_no").to_pylist()
    spans = {row["sink_no"]: row["n"] for row in counted}
    # The edges of all sinks lie in the same blocks, so their bytes are shared out by their number.
    weights = [edges.get(sink.no, 0) for sink in catalog.sinks]
    parts = [shared(relations[name].bytes, weights) for name in EDGES]
    parts.append(shared(relations[SPANS].bytes, [spans.get(s.no, 0) for s in catalog.sinks]))
    per_edge = _per_edge([relations[name] for name in EDGES])
    rows: list[dict[str, Any]] = []
    for sink, count, *own in zip(catalog.sinks, weights, *parts, strict=True):
        results = relations.get(f"result_{sink.no}", Relation(sink.name))
        each = per_edge if count else None
        carried = (each or 0) * count + (relations[SPANS].per_row or 0) * spans.get(sink.no, 0)
        per_set = carried / results.rows if carried and results.rows else None
        rows.append(
            {
                "flow": sink.flow,
                "sink": sink.name,
                "capture": sink.capture,
                "results": results.rows,
                "edges": count,
                "bytes_results": results.bytes,
                "bytes_edges": sum(own),
                "bytes_per_result": results.per_row,
                "bytes_per_set": per_set,
                "bytes_per_edge": each,
                "ratio": _ratio(each),
            }
        )
    return pa.Table.from_pylist(rows, SINKS)


def _relations(
    catalog: Catalog, relations: Mapping[str, Relation], encodings: Sequence[Mapping[str, Any]]
) -> pa.Table:
    whose = {f"result_{sink.no}": sink.qualified for sink in catalog.sinks}
    whose |= {f"record_{source.no}": source.qualified for source in catalog.sources}
    chosen: dict[str, list[tuple[str, list[str]]]] = {name: [] for name in relations}
    for row in encodings:
        chosen[row["relation"]].append((row["name"], row["encodings"]))
    ordered = sorted(relations.values(), key=lambda one: (-one.bytes, -one.rows, one.name))
    rows = [
        {
            "relation": one.name,
            "of": whose.get(one.name),
            "rows": one.rows,
            "rows_in_file": one.stored,
            "bytes": one.bytes,
            "bytes_per_row": one.per_row,
            "ratio": _ratio(one.per_row) if one.name in EDGES else None,
            "encodings": chosen[one.name],
        }
        for one in ordered
    ]
    return pa.Table.from_pylist(rows, RELATIONS)


def _per_edge(relations: Sequence[Relation]) -> float | None:
    # Compaction and checkpoints leave different numbers of edges in the file for each direction, so
    # each is divided by its own.
    first, *others = (relation.per_row for relation in relations)
    return None if first is None else first + sum(each or 0.0 for each in others)


def _ratio(size: float | None) -> float | None:
    return None if size is None else size / PLAIN


def _segments(names: Sequence[str]) -> str:
    columns = (
        "column_id, column_name, column_path, segment_type AS type, compression, persistent, "
        'block_id, block_offset, additional_block_ids AS more, stats, "count" AS n'
    )
    return " UNION ALL ".join(
        f"SELECT '{name}' AS relation, {columns} FROM pragma_storage_info('{name}')"
        for name in names
    )


def _sizes(names: Sequence[str], block: int) -> str:
    """Rows and bytes of each relation.

    A segment reaches to the next one in its block. Where the last of a block ends is not told:
    at the block's end, but it has no more than its values take as they are.
    """
    return f"""
        WITH segments AS ({_segments(names)}),
        placed AS (
            SELECT relation, more,
                lead(block_offset) OVER (PARTITION BY block_id ORDER BY block_offset)
                    - block_offset AS known,
                least({block} - block_offset, CASE
                    WHEN type = 'VALIDITY' THEN n // 8 + 8
                    WHEN type IN ('VARCHAR', 'BLOB') THEN n * (8 + coalesce(try_cast(regexp_extract(
                        stats::VARCHAR, 'max_string_length\\D+(\\d+)', 1) AS BIGINT), {block}))
                    WHEN regexp_matches(type, 'HUGEINT|UUID|DECIMAL|INTERVAL') THEN n * 16
                    ELSE n * 8 END) AS rest
            FROM segments WHERE persistent AND block_id >= 0),
        bytes AS (
            SELECT relation,
                sum(coalesce(known, rest) + {block} * coalesce(len(more), 0)) AS bytes
            FROM placed GROUP BY relation),
        counted AS (
            SELECT relation, sum(n) AS total,
                coalesce(sum(n) FILTER (WHERE persistent), 0) AS stored
            FROM segments WHERE column_path = '[0]' GROUP BY relation)
        SELECT relation AS name, total::BIGINT AS rows, stored::BIGINT AS stored,
            coalesce(bytes, 0)::BIGINT AS bytes
        FROM counted LEFT JOIN bytes USING (relation)"""


def _encodings(names: Sequence[str]) -> str:
    """The encodings of each column in the file, the one of the most values first."""
    return f"""
        SELECT relation, name, list(compression ORDER BY n DESC, compression) AS encodings
        FROM (
            SELECT relation, column_id, column_name AS name, compression, sum(n) AS n
            FROM ({_segments(names)})
            WHERE persistent AND type <> 'VALIDITY' GROUP BY ALL)
        GROUP BY relation, column_id, name ORDER BY relation, column_id"""
