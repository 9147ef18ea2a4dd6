"""The two Spark jobs: map files into cached outputs, and reduce the outputs of a window."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from headwater.columns import identity_hash, quoted
from headwater.errors import FlowError, RunError
from headwater.mapreduce.functions import FunctionMap, FunctionReduce, NativeMap, NativeReduce
from headwater.mapreduce.mapping import FILE, ID, IDS, ROW_BITS
from headwater.mapreduce.records import PART, Part, Unreadable, parts
from headwater.mapreduce.results import Mapped, Reduced, result_ids
from headwater.mapreduce.tasks import (
    ERROR,
    Note,
    combine_task,
    map_task,
    mapped_schema,
    read_task,
    reduce_task,
    reduced_schema,
)
from headwater.spark_errors import one_line
from headwater.streams.schema import type_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from headwater.mapreduce.settings import Work

_DATA = re.compile(r"SQLSTATE: 22|\bUnreadable: ")
"""In an error of Spark's: the data is at fault, not the machine."""


class Jobs:
    """Runs map and reduce on Spark."""

    def __init__(self, spark: SparkSession, work: Work, sink: str) -> None:
        self._spark, self._work, self._sink = spark, work, sink
        self._cores = spark.sparkContext.defaultParallelism

    def check(self) -> None:
        """Refuse what Spark can't plan, before a file is touched."""
        try:
            pairs = self.pairs([], None)
            self._reduced(self._combined(pairs)).schema  # noqa: B018 - asking plans it
        except PySparkException as error:
            raise FlowError(f"map-reduce {self._sink!r}: {one_line(error)}") from error

    # --- map

    def map(self, files: Mapping[int, Path], outputs: Mapping[int, Path]) -> dict[int, Mapped]:
        """Map files by number, all in one job; each one's pairs become Parquet in its folder."""
        found: dict[int, Mapped] = {}
        cut: dict[int, list[Part]] = {}
        for number, path in files.items():
            try:
                cut[number] = self.cut(number, path)
            except Unreadable as error:
                found[number] = Mapped(reason=str(error))
        try:
            return found | self._mapped(cut, outputs) if cut else found
        except PySparkException as error:
            if not _DATA.search(str(error)):
                raise RunError(f"mapping failed: {one_line(error)}") from error
            if len(cut) == 1:
                return found | {number: Mapped(reason=_reason(error)) for number in cut}
        for number in cut:
            found |= self.map({number: files[number]}, outputs)
        return found

    def cut(self, number: int, path: Path) -> list[Part]:
        """The parts of a file: as many for each core, and of one size, so that none waits."""
        size = path.stat().st_size if path.exists() else 0
        turns = max(1, round(size / PART / self._cores))
        return parts(number, path, self._work.format, size // (turns * self._cores) + 1)

    def _mapped(
        self, cut: Mapping[int, list[Part]], outputs: Mapping[int, Path]
    ) -> dict[int, Mapped]:
        home = next(iter(outputs.values())).parent
        with tempfile.TemporaryDirectory(prefix=".mapping-", dir=home) as name:
            written, notes = Path(name) / "pairs", Path(name) / "notes"
            notes.mkdir()
            pairs = self.pairs([part for each in cut.values() for part in each], notes)
            pairs = self._combined(pairs, alone=len(cut) == 1)
            if FILE in pairs.columns:
                pairs.write.partitionBy(FILE).parquet(str(written))
            else:
                pairs.write.parquet(str(written / f"{FILE}={next(iter(cut))}"))
            found = {}
            for number in cut:
                told = [Note.read(path) for path in sorted(notes.glob(f"{number:08d}-*.json"))]
                found[number] = _told(told, len(cut[number]))
                if not found[number].reason:
                    _replace(written / f"{FILE}={number}", outputs[number])
        return found

    def pairs(
        self,
        cut: Sequence[Part],
        notes: Path | None,
        rows: Sequence[int] | None = None,
        *,
        combines: bool = True,
    ) -> DataFrame:
        """The pairs of parts of files as maps give them: file, record's id, key, value."""
        work = self._work
        places = self._spark.range(0, len(cut), 1, max(1, len(cut)))
        if isinstance(work.map, FunctionMap):
            # What a user's combiner makes of them is known in the task, without a shuffle.
            in_task = isinstance(work.combine, FunctionReduce) and combines
            schema = mapped_schema(work, combined=in_task)
            task = map_task(cut, work, notes, rows, combines=in_task)
            return places.mapInArrow(task, _ddl(schema))
        schema = pa.schema([(FILE, pa.int64()), (ID, pa.int64()), *work.format.schema])
        records = places.mapInArrow(read_task(cut, work, notes, rows), _ddl(schema))
        return self._natively(records, work.map)

    def _natively(self, records: DataFrame, step: NativeMap) -> DataFrame:
        if step.where is not None:
            records = records.where(step.where)
        pairs = records.selectExpr(FILE, ID, *step.select)
        schema = self._work.schema
        if len(pairs.columns) != len(schema) + 2:
            raise FlowError(
                f"map {', '.join(step.select)!r} gives {len(pairs.columns) - 2} columns, its "
                f"schema has {len(schema)}: {self._work.pairs}"
            )
        named = pairs.toDF(FILE, ID, *schema.names)
        own = [quoted(f.name).cast(type_text(f.type)).alias(f.name) for f in schema]
        return named.select(FILE, ID, *own)

    def _combined(self, pairs: DataFrame, *, alone: bool = False) -> DataFrame:
        """The pairs of each file and key as one, where there is a combiner.

        Of one file `alone`, its number need not be with each pair.
        """
        work = self._work
        if work.combine is None or IDS in pairs.columns:
            return pairs
        if isinstance(work.combine, FunctionReduce):
            if isinstance(work.map, FunctionMap):
                return pairs
            return pairs.mapInArrow(combine_task(work), _ddl(mapped_schema(work, combined=True)))
        value = F.expr(work.combine.aggregate)
        if not work.counts:
            value = value.cast(type_text(work.value.type))
        made = [value.alias(work.value.name)]
        if work.eager:
            made.append(F.collect_set(ID).alias(IDS))
        # Nothing in a plan may differ from file to file: Spark would compile it anew each time.
        by = [] if alone and not self._ordered else [F.col(FILE)]
        combined = pairs.groupBy(*by, *map(quoted, work.keys)).agg(*made)
        if not self._ordered:
            return combined
        own = [quoted(name) for name in combined.columns if name != FILE]
        return combined.select(FILE, F.shiftleft(FILE, ROW_BITS).alias(ID), *own)

    # --- reduce

    def reduce(self, number: int, outputs: Sequence[Path]) -> Reduced:
        """Reduce the map outputs of a window."""
        files = [str(path) for each in outputs for path in sorted(each.glob("*.parquet"))]
        if not files:
            return self._empty()
        try:
            pairs = self._spark.read.schema(_ddl(self.cached)).parquet(*files)
            return self._taken(self._reduced(pairs).toArrow(), number)
        except PySparkException as error:
            raise RunError(f"reduce {number} failed: {one_line(error)}") from error

    @property
    def cached(self) -> pa.Schema:
        """The columns of a cached map output."""
        work = self._work
        value = pa.field(work.value.name, pa.int64()) if work.counts else work.value
        ids = list(mapped_schema(work, combined=True))[len(work.schema) + 2 :]
        place = [(ID, pa.int64())] if self._ordered else []
        own = [*place, *list(work.schema)[:-1], value]
        return pa.schema([*own, *(ids if work.combine is not None else ())])

    @property
    def _ordered(self) -> bool:
        """Whether the place of a pair is kept: for functions, whose values come in order."""
        work = self._work
        natively = isinstance(work.combine, NativeReduce) and isinstance(work.reduce, NativeReduce)
        return not natively

    def _reduced(self, pairs: DataFrame) -> DataFrame:
        """A row for each key: its hash as `__hw_id`, the key, the result, its set, its error."""
        work, step = self._work, self._work.reduce
        if isinstance(step, FunctionReduce):
            rows = self._by_function(pairs, step)
        else:
            rows = self._by_aggregate(pairs, step)
        keys = [rows.schema[name] for name in work.keys]
        return rows.select(identity_hash(keys).alias(ID), *map(quoted, rows.columns))

    def _by_function(self, pairs: DataFrame, step: FunctionReduce) -> DataFrame:
        work = self._work
        keys = [quoted(name) for name in work.keys]
        # Values come in the order of their files and records: the same however often it runs.
        ordered = pairs.repartition(*keys).sortWithinPartitions(*keys, ID)
        ids = [self._ids().alias(IDS)] if work.eager else []
        given = ordered.select(*keys, quoted(work.value.name), *ids)
        return given.mapInArrow(reduce_task(work, step), _ddl(reduced_schema(work)))

    def _by_aggregate(self, pairs: DataFrame, step: NativeReduce) -> DataFrame:
        work = self._work
        aggregate = step.aggregate
        if step == work.combine and step.combines is not None:
            aggregate = f"{step.combines}(`{work.value.name.replace('`', '``')}`)"
        result = work.output.field(len(work.keys))
        made = [F.expr(aggregate).cast(type_text(result.type)).alias(result.name)]
        if work.eager:
            each = F.flatten(F.collect_list(IDS)) if work.combine else F.collect_set(ID)
            made.append(each.alias(IDS))
        rows = pairs.groupBy(*map(quoted, work.keys)).agg(*made)
        return rows.withColumn(ERROR, F.lit(None).cast("string"))

    def _ids(self) -> Column:
        return F.col(IDS) if self._work.combine is not None else F.array(ID)

    def _taken(self, table: pa.Table, number: int) -> Reduced:
        failed = table.filter(table[ERROR].is_valid())
        letters = [
            {"key": [row[name] for name in self._work.keys], "reason": row[ERROR]}
            for row in failed.select([*self._work.keys, ERROR]).to_pylist()
        ]
        good = table.filter(table[ERROR].is_null())
        sets = good[IDS] if self._work.eager else None
        own = pa.schema([(ID, pa.int64()), *self._work.output])
        rows = good.select(own.names).cast(own)
        ids = result_ids(self._sink, number, rows[ID].to_numpy())
        return Reduced(rows.set_column(0, ID, pa.array(ids)), sets, letters)

    def _empty(self) -> Reduced:
        schema = pa.schema([(ID, pa.int64()), *self._work.output])
        sets = pa.chunked_array([], pa.list_(pa.int64())) if self._work.eager else None
        return Reduced(schema.empty_table(), sets)


def _told(notes: Sequence[Note], expected: int) -> Mapped:
    """What the parts of a file tell together."""
    if len(notes) != expected:
        raise RunError("a task left no note of what it read; is the state folder shared by all?")
    for note in notes:
        if note.unreadable:
            return Mapped(reason=note.unreadable)
    letters = [letter for note in notes for letter in note.letters]
    rejected = sum(note.rejected for note in notes)
    return Mapped(sum(note.records for note in notes), rejected, letters)


def _replace(written: Path, output: Path) -> None:
    """Move a map output to its place; one of a run that was killed makes room."""
    shutil.rmtree(output, ignore_errors=True)
    if written.exists():
        written.rename(output)
    else:
        output.mkdir()


def _reason(error: BaseException) -> str:
    said = one_line(error)
    return said.partition("Unreadable: ")[2] or said


def _ddl(schema: pa.Schema) -> str:
    """Columns as Spark reads them; ours, whose names streams may not have, among them."""
    return ", ".join(f"`{f.name.replace('`', '``')}` {type_text(f.type, f.name)}" for f in schema)
