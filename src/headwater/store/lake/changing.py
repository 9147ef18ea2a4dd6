"""Marks and erasures on a lake: one commit of `meta` makes a change, all of it.

The relations of marks are seen at the versions that `meta` names, so that what is written to them
before is seen by nobody. An erasure names the sources, too, whose data files still hold what was
erased: readers pass over it, and whoever writes the lake next removes it, if this process is killed
before it has.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headwater.errors import StoreError
from headwater.store.batch import ID
from headwater.store.failures import explained
from headwater.store.ingest import visible
from headwater.store.lake.place import library
from headwater.store.lake.tables import (
    CHANGED,
    ERASING,
    NUMBERS,
    PINS,
    SETS,
    Added,
    columns_of,
    in_memory,
    statistics,
)
from headwater.store.lake.tasks import GROUP, indexed, written
from headwater.store.marks import Erase, Mark, numbers_used

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb
    import numpy.typing as npt

    from headwater.store.lake.tables import Table
    from headwater.store.lake.writer import LakeWriter
    from headwater.store.marks import Change

    Ids = npt.NDArray[np.int64]


def apply(writer: LakeWriter, change: Change) -> int:
    """Mark, unmark or erase records, all of it or nothing; what the change answers."""
    failures = (pa.ArrowException, OSError, library().exceptions.DeltaError)
    try:
        relation = f"record_{change.source_no}" if isinstance(change, Erase) else None
        erased = np.unique(change.ids) if isinstance(change, Erase) else np.empty(0, np.int64)
        with in_memory() as memory:
            _load(writer, memory, change)
            answer = change.write(memory)
            rows = {name: _all(memory, name) for name in CHANGED}
            rows[SETS] = memory.sql(
                "SELECT * FROM edges WHERE source_no IS NOT NULL ORDER BY ALL"
            ).to_arrow_table()
        # What takes long, and may find no room, comes before anything is changed.
        cleaned = None
        if relation in writer.own_relations():
            cleaned = _without(writer, writer.table(relation), erased)
        facts = {PINS: json.dumps(_write(writer, rows))}
        if isinstance(change, Mark):
            facts[NUMBERS] = str(answer)
        if cleaned is not None and cleaned[1]:
            assert isinstance(change, Erase)
            facts[ERASING] = json.dumps([change.source_no])
    except failures as error:
        raise explained(error, writer.path, change.doing) from error
    writer.unswept = True
    writer.note_all(facts)
    try:
        for name in (*CHANGED, SETS):
            writer.table(name).sweep()
        if relation is not None and cleaned is not None:
            answer = _swap(writer, relation, *cleaned)
            writer.note_all({ERASING: None})
        writer.unswept = False
    except failures as error:
        raise StoreError(
            f"{change.doing}: done, and no query sees what is gone, but old data files are still "
            f"in {writer.place}: {explained(error, writer.path, 'deleting')}; they go when it is "
            "written to again"
        ) from error
    return answer


def finish(writer: LakeWriter) -> None:
    """Remove what an erasure left in data files that did not come to its end."""
    told = writer.query("SELECT value FROM meta WHERE key = ?", [ERASING])["value"].to_pylist()
    if not told:
        return
    for source_no in json.loads(told[0]):
        relation = f"record_{source_no}"
        ids = writer.query("SELECT id FROM erased WHERE source_no = ?", [source_no])["id"]
        _swap(writer, relation, *_without(writer, writer.table(relation), ids.to_numpy()))
    for name in (*CHANGED, SETS):
        writer.table(name).sweep()
    writer.note_all({ERASING: None})


def _load(writer: LakeWriter, memory: duckdb.DuckDBPyConnection, change: Change) -> None:
    """Have a database in memory hold what a change looks at."""
    for name in ("sources", "marks", "marked", "erased"):
        _insert(memory, name, writer.query(f"SELECT * FROM {name}"))
    memory.execute(
        f"CREATE OR REPLACE SEQUENCE mark_numbers START {numbers_used(writer.query) + 1}"
    )
    if isinstance(change, Erase) and change.edges.num_rows:
        # Which results have edges matters to it, not which ones.
        known = writer.query(
            "SELECT DISTINCT seq, sink_no, result_id, NULL::SMALLINT AS source_no, "
            "NULL::BIGINT AS source_id FROM edges WHERE sink_no IN (SELECT unnest(?::BIGINT[])) "
            "AND result_id IN (SELECT unnest(?::BIGINT[]))",
            [
                change.edges["sink_no"].unique().to_pylist(),
                change.edges["result_id"].unique().to_pylist(),
            ],
        )
        _insert(memory, "edges", known)


def _insert(memory: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    with visible(memory, hw_rows=rows):
        memory.execute(f"INSERT INTO {name} SELECT * FROM hw_rows")


def _all(memory: duckdb.DuckDBPyConnection, name: str) -> pa.Table:
    return memory.sql(f"SELECT * FROM {name} ORDER BY ALL").to_arrow_table()


def _write(writer: LakeWriter, rows: Mapping[str, pa.Table]) -> dict[str, int]:
    """Write what changed; the versions that have it, which nobody sees yet."""
    told = writer.query("SELECT value FROM meta WHERE key = ?", [PINS])["value"].to_pylist()
    before: dict[str, int] = json.loads(told[0]) if told else {}
    versions = {}
    for name, found in rows.items():
        table = writer.table(name)
        # Sets are added to, the others are small, and written anew.
        kept = set(table.at(before[name])) if name == SETS and name in before else set()
        old = [path for path in table.at(None) if path not in kept]
        new = []
        if found.num_rows:
            new = [written(writer.place, name, found.cast(columns_of(name)))]
        if new or old:
            table.replace_files(new, old, data_change=True)
        versions[name] = table.look()
    return versions


def _without(writer: LakeWriter, table: Table, ids: Ids) -> tuple[list[Added], list[str], int]:
    """Data files of records without some ids: new ones, those they stand for, rows that go."""
    filesystem, root = writer.place.filesystem()
    new: list[Added] = []
    old: list[str] = []
    gone = 0
    table.look()
    for address in table.files_among(ID, ids):
        folder = f"{root}/{table.relation}"
        before = f"{folder}/{address.rsplit('/', 1)[1]}"
        with filesystem.open_input_file(before) as opened:
            file = pq.ParquetFile(opened)
            held = file.read([ID])[ID].to_numpy()
            hit = np.isin(held, ids)
            if not hit.any():
                continue
            old.append(address)
            gone += int(hit.sum())
            if hit.all():
                continue
            path = f"kept-{uuid.uuid4().hex}.parquet"
            kept = []
            with pq.ParquetWriter(
                f"{folder}/{path}", file.schema_arrow, filesystem=filesystem, compression="zstd"
            ) as out:
                for group in range(file.num_row_groups):
                    rows = file.read_row_group(group)
                    rows = rows.filter(pa.array(~np.isin(rows[ID].to_numpy(), ids)))
                    if rows.num_rows:
                        out.write_table(rows, row_group_size=GROUP)
                        kept.append(rows.select(indexed(table.relation, rows.schema)))
        facts: dict[str, Any] = statistics(pa.concat_tables(kept))
        size = filesystem.get_file_info(f"{folder}/{path}").size
        new.append(Added(table.relation, path, size, facts["numRecords"], facts))
    return new, old, gone


def _swap(writer: LakeWriter, relation: str, new: list[Added], old: list[str], gone: int) -> int:
    """Have new files stand for old ones, and delete all that the table does not have."""
    table = writer.table(relation)
    if old:
        table.replace_files(new, old, data_change=True)
    table.sweep()
    return gone
