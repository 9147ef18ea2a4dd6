"""Provenance that was not stored: found by mapping files again, when it is asked for.

With `capture="ancestors"` a result is known by its reduce and its key, and a reduce by the files of
its window. The records of a result are those of these files that map gives the key for; the results
of a record are those of its keys, in the reduces that had its file.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException

from headwater.columns import quoted
from headwater.errors import StoreError
from headwater.mapreduce.jobs import Jobs
from headwater.mapreduce.mapping import ID as RECORD
from headwater.mapreduce.mapping import ROW_BITS
from headwater.mapreduce.outcomes import record_table, shown
from headwater.mapreduce.records import Unreadable, parts
from headwater.session import adopt_or_start
from headwater.spark_errors import one_line
from headwater.store.batch import ID, SEQ, TIME
from headwater.store.schema import quoted as sql_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.mapreduce.settings import Settings
    from headwater.store.catalog import Sink, Source
    from headwater.store.reread import Query

Ids = npt.NDArray[np.int64]

_LAST_ROW = (1 << ROW_BITS) - 1
EDGES = pa.schema([("result_id", pa.int64()), ("source_id", pa.int64()), ("seq", pa.int64())])


class Asked:
    """Answers for the results of one sink."""

    def __init__(self, query: Query, sink: Sink, source: Source) -> None:
        self._query, self._sink, self._source = query, sink, source
        self._settings = _program(query, source.flow)

    def edges(self, result_ids: Ids) -> pa.Table:
        """The records behind results: `result_id`, `source_id`, `seq` of the result's batch."""
        asked = self._results(f"{ID} IN (SELECT unnest(?::BIGINT[]))", [result_ids.tolist()])
        if not asked.num_rows:
            return EDGES.empty_table()
        windows = self._windows(pc.unique(asked[SEQ]).to_pylist())
        files = sorted({file for window in windows.values() for file in window})
        pairs = self._pairs(files, None, asked.select(self._keys))
        return self._joined(asked, pairs, windows)

    def reached(self, record_ids: Ids) -> pa.Table:
        """The results of records: `result_id`, `source_id`, `seq`."""
        files = np.unique(record_ids >> ROW_BITS).tolist()
        seqs = self._query(
            "SELECT DISTINCT a.seq FROM arrivals a JOIN files f "
            "ON a.source_no = f.source_no AND a.path = f.path WHERE a.source_no = ? "
            "AND f.file_key IN (SELECT unnest(?::BIGINT[]))",
            [self._source.no, files],
        )["seq"].to_pylist()
        if not seqs:
            return EDGES.empty_table()
        pairs = self._pairs(files, record_ids.tolist(), None)
        asked = self._results(f"{SEQ} IN (SELECT unnest(?::BIGINT[]))", [seqs])
        return self._joined(asked, pairs, self._windows(seqs))

    # --- inner

    @property
    def _keys(self) -> list[str]:
        return list(self._settings.work.keys)

    def _results(self, condition: str, params: list[object]) -> pa.Table:
        keys = ", ".join(sql_name(name) for name in self._keys)
        return self._query(
            f"SELECT {ID} AS result_id, {SEQ}, {keys} FROM result_{self._sink.no} "
            f"WHERE {condition}",
            params,
        )

    def _windows(self, seqs: Sequence[int]) -> dict[int, set[int]]:
        """By batch, the numbers of the files of its window."""
        rows = self._query(
            "SELECT a.seq, f.file_key FROM arrivals a JOIN files f "
            "ON a.source_no = f.source_no AND a.path = f.path WHERE a.source_no = ? "
            "AND a.seq IN (SELECT unnest(?::BIGINT[]))",
            [self._source.no, list(seqs)],
        )
        found: dict[int, set[int]] = {seq: set() for seq in seqs}
        for row in rows.to_pylist():
            found[row["seq"]].add(row["file_key"])
        return found

    def _pairs(
        self, files: Sequence[int], rows: Sequence[int] | None, keys: pa.Table | None
    ) -> pa.Table:
        """The keys that maps give for records: `__hw_id` and the key; of some keys if given."""
        settings, paths = self._settings, _paths(self._query, self._source)
        known = [file for file in files if file in paths]
        spark = adopt_or_start()
        try:
            cut = [
                part
                for file in known
                for part in parts(
                    file, _unchanged(self._source, *paths[file]), settings.work.format
                )
            ]
            found = Jobs(spark, settings.work, settings.out).pairs(cut, None, rows, combines=False)
            pairs = found.select(RECORD, *map(quoted, self._keys))
            if keys is not None:
                wanted = spark.createDataFrame(keys.group_by(self._keys).aggregate([]))
                same = None
                for name in self._keys:
                    one = pairs[_name(name)].eqNullSafe(wanted[_name(name)])
                    same = one if same is None else same & one
                pairs = pairs.join(wanted, same, "left_semi")
            return pairs.distinct().toArrow()
        except Unreadable as error:
            raise StoreError(f"the records behind {self._sink.name!r}: {error}") from error
        except PySparkException as error:
            raise StoreError(
                f"the records behind {self._sink.name!r} can't be found again: {one_line(error)}"
            ) from error

    def _joined(
        self, asked: pa.Table, pairs: pa.Table, windows: Mapping[int, set[int]]
    ) -> pa.Table:
        """Results beside the records of the same key in a file of their window."""
        by_key: dict[tuple[object, ...], list[int]] = {}
        columns = [pairs[name].to_pylist() for name in self._keys]
        for id_, *key in zip(pairs[RECORD].to_pylist(), *columns, strict=True):
            by_key.setdefault(tuple(key), []).append(id_)
        results, records, seqs = [], [], []
        told = [asked[name].to_pylist() for name in ("result_id", SEQ, *self._keys)]
        for result, seq, *key in zip(*told, strict=True):
            mine = [i for i in by_key.get(tuple(key), ()) if i >> ROW_BITS in windows[seq]]
            results += [result] * len(mine)
            records += mine
            seqs += [seq] * len(mine)
        return pa.table([results, records, seqs], schema=EDGES)


def records(query: Query, source: Source, ids: Ids) -> pa.Table:
    """Records, read again: `__hw_id`, `__hw_time`, own columns; those that are there."""
    paths, settings = _paths(query, source), _program(query, source.flow)
    tables = []
    for file in np.unique(ids >> ROW_BITS).tolist():
        if file in paths:
            rows = ids[ids >> ROW_BITS == file] & _LAST_ROW
            tables.append(record_table(settings, file, _unchanged(source, *paths[file]), rows))
    empty = pa.schema([(ID, pa.int64()), *shown(settings)]).empty_table()
    found = pa.concat_tables([empty, *tables])
    return found.add_column(1, TIME, pa.nulls(found.num_rows, pa.timestamp("us", "UTC")))


def _paths(query: Query, source: Source) -> dict[int, tuple[str, int]]:
    """By number, the path of a file, and when it was modified (ms)."""
    rows = query(
        "SELECT f.file_key, f.path, max(a.modified) AS modified FROM files f JOIN arrivals a "
        "ON a.source_no = f.source_no AND a.path = f.path WHERE f.source_no = ? GROUP BY ALL",
        [source.no],
    )
    return {row["file_key"]: (row["path"], row["modified"]) for row in rows.to_pylist()}


def _unchanged(source: Source, name: str, modified: int) -> Path:
    """The path of a file that is there as it was mapped."""
    path = Path(name)
    try:
        now = path.stat().st_mtime_ns // 10**6
    except OSError:
        now = None
    if now != modified:
        what = "is gone" if now is None else "has changed since it was mapped"
        raise StoreError(
            f"records of source {source.name!r} can't be found again: {path} {what}; put it back "
            "as it was (capture='eager' keeps them in the store)"
        )
    return path


def _program(query: Query, flow: str) -> Settings:
    rows = query("SELECT program FROM flows WHERE flow = ?", [flow])
    programs = [row for row in rows["program"].to_pylist() if row is not None]
    if not programs:
        raise StoreError(f"map-reduce {flow!r} is not in the store to be run again")
    try:
        settings: Settings = pickle.loads(programs[-1])
    except (pickle.PickleError, ImportError, AttributeError) as error:
        raise StoreError(
            f"map-reduce {flow!r} can't be loaded from the store ({error}): make the module of its "
            "functions importable"
        ) from error
    return settings


def _name(name: str) -> str:
    """A column's name as Spark finds it, whatever characters it has."""
    return f"`{name.replace('`', '``')}`"
