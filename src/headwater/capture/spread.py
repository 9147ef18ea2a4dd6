"""A micro-batch into a lake: Spark's tasks write its rows, the driver only which files they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from headwater.capture.decode import decode, decode_records
from headwater.capture.kafka_sink import ORIGINS, TopicWriter
from headwater.capture.write import TableWriter, given_on
from headwater.lowering.outputs import CONTENT, ID, OUTPUT
from headwater.store.batch import BASE, SEQ
from headwater.store.files import ROW_BITS
from headwater.store.lake.scanning import equip, numbered, scanned
from headwater.store.lake.staging import letters_of, read, staged, unstage
from headwater.store.lake.tasks import (
    BEFORE,
    MIXED,
    RANK,
    STORED,
    TOLD,
    Sorted,
    Task,
    told,
)
from headwater.times import micros

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    import numpy as np
    import numpy.typing as npt
    from pyspark.sql import SparkSession

    from headwater.capture.arrivals import Arrival
    from headwater.capture.dead_letters import DeadLetters
    from headwater.flow.flow import Flow
    from headwater.live.parallel.graph import SpreadGraph
    from headwater.lowering.outputs import Outputs, Part
    from headwater.store.batch import Committed
    from headwater.store.files import Files
    from headwater.store.lake.tables import Added
    from headwater.store.lake.writer import LakeWriter

_PIECE = 20
"""Bits of the number of a nameless result that count within a piece of a task."""
_BATCH = 42
"""Bits below the number of its batch."""
_REPEATS = (RANK, BEFORE, STORED, MIXED)


@dataclass(frozen=True, slots=True)
class Sorting:
    """Sorts the rows that a task is given, as they are in the united plan."""

    parts: tuple[Part, ...]
    tagged: bool
    batch: int
    muted: frozenset[str]
    repeating: frozenset[int]
    """The parts whose ids may come twice."""
    names: tuple[str, ...]
    """The names of the plan's columns."""

    def __call__(self, rows: pa.Table, piece: int) -> Sorted:
        """Rows sorted out by sink and source."""
        rows = rows.rename_columns(list(self.names))
        first = (self.batch << _BATCH) + (piece << _PIECE)
        if self.parts[0].kind == "records" and not self.tagged:
            found = {self.parts[0].name: decode_records(self.parts[0], rows)}
            return Sorted({}, found, self._repeats(rows))
        decoded = decode(self.parts, rows, first, tagged=self.tagged)
        results = {name: part for name, part in decoded.results.items() if name not in self.muted}
        repeats = self._repeats(rows)
        return Sorted(
            results, decoded.records, repeats, decoded.times, decoded.sessions, decoded.letters
        )

    def _repeats(self, rows: pa.Table) -> dict[tuple[str, str], pa.Table]:
        found: dict[tuple[str, str], pa.Table] = {}
        for number in self.repeating:
            part = self.parts[number]
            own = rows.filter(pc.equal(rows[OUTPUT], number)) if self.tagged else rows
            found[part.kind, part.name] = own.select(_REPEATS)
        return found


class Spread:
    """Takes the micro-batches of a flow into a lake."""

    def __init__(
        self,
        flow: Flow,
        outputs: Outputs,
        writer: LakeWriter,
        files: Mapping[str, Files],
        letters: DeadLetters,
        graph: SpreadGraph | None = None,
    ) -> None:
        self._flow, self._outputs, self._writer, self._files = flow, outputs, writer, files
        self._letters, self._graph = letters, graph
        self._still = list(outputs.still)
        equip(flow.spark, writer.place)

    def take(
        self,
        df: DataFrame,
        query_id: str,
        batch: int,
        *,
        watermark: datetime | None,
        last: bool,
        arrivals: Mapping[str, Sequence[Arrival]],
        muted: Callable[[str, int], bool] | None,
    ) -> tuple[Committed, dict[str, int], int]:
        """Write a batch: what was committed, how many results each sink got, how many letters."""
        silent = frozenset(
            part.name
            for part in self._outputs.parts
            if part.kind == "results" and muted is not None and muted(part.name, batch)
        )
        with self._writer.batch() as seq:
            added = self._written(df, self._outputs.parts, self._outputs.tagged, seq, batch, silent)
            for part, records in self._still:
                added += self._written(records, (part,), False, seq, batch, frozenset())
            found, added = staged(added)
            letters = self._letters.write(batch, self._read_letters(found))
            if self._graph is not None:
                added = self._graph.changes(seq, added, micros(watermark), last=last)
            committed = self._writer.commit(
                query_id,
                batch,
                added,
                watermark=watermark,
                last=last,
                rows={"files": self._new_files(added), "arrivals": self._arrived(arrivals, seq)},
                before_commit=lambda: self._hand_on(added, query_id, batch),
            )
            if self._graph is not None:
                self._graph.accept()
            unstage(self._writer.place, seq)
        self._still.clear()
        results = {name: _rows(added, f"result_{self._sink(name).no}") for name in self._flow.sinks}
        return committed, results, letters

    def _written(
        self,
        df: DataFrame,
        parts: tuple[Part, ...],
        tagged: bool,
        seq: int,
        batch: int,
        muted: frozenset[str],
    ) -> list[Added]:
        """Have tasks write rows; the files that they made."""
        repeating = frozenset(n for n, part in enumerate(parts) if self._may_repeat(part))
        if repeating:
            df = self._counted(df, parts, tagged, repeating)
        catalog, flow = self._writer.catalog, self._flow.name
        task = Task(
            self._writer.place,
            seq,
            {sink.name: sink for sink in catalog.sinks if sink.flow == flow},
            {source.name: source for source in catalog.sources if source.flow == flow},
            dict.fromkeys(self._files, ROW_BITS),
            Sorting(parts, tagged, batch, muted, repeating, tuple(df.columns)),
            None if self._graph is None else self._graph.came,
            erased={p.name: self._erased(p.name) for p in parts if p.kind == "records"},
        )
        return told(numbered(df).mapInArrow(task, TOLD).toArrow())

    def _may_repeat(self, part: Part) -> bool:
        """Whether an id of a part may come twice: in a batch, or in several."""
        if part.kind == "records":
            return self._flow.sources[part.name].identity.how != "position"
        return part.kind == "results" and part.capture != "none" and not part.unique

    def _counted(
        self, df: DataFrame, parts: Sequence[Part], tagged: bool, repeating: frozenset[int]
    ) -> DataFrame:
        """Rows with what is to be known of ids that may come twice."""
        if not tagged:
            df = df.withColumn(OUTPUT, F.lit(0))
        if CONTENT not in df.columns:
            df = df.withColumn(CONTENT, F.lit(None).cast("bigint"))
        same = Window.partitionBy(OUTPUT, ID)
        df = df.withColumns(
            {
                RANK: F.row_number().over(same.orderBy(ID)),
                MIXED: F.min(CONTENT).over(same) != F.max(CONTENT).over(same),
            }
        )
        known = [self._known(number, parts[number]) for number in sorted(repeating)]
        there = [one for one in known if one is not None]
        if not there:
            nothing = F.lit(None).cast("bigint")
            return df.withColumns({BEFORE: nothing, STORED: nothing})
        return df.join(reduce(DataFrame.unionByName, there), [OUTPUT, ID], "left")

    def _known(self, number: int, part: Part) -> DataFrame | None:
        """The ids of a part that the lake has, how often, and the content of records."""
        relation = self._relation(part)
        files = self._writer.files(relation)
        if not files:
            return None
        rows = self._read(relation, files)
        if part.kind == "records":
            counted = rows.select(ID, F.lit(1).cast("bigint").alias(BEFORE), F.col(CONTENT))
            counted = counted.withColumnRenamed(CONTENT, STORED)
        else:
            own = F.coalesce(F.col(BASE), F.col(ID)).alias(ID)
            counted = rows.select(own).groupBy(ID).agg(F.count("*").alias(BEFORE))
            counted = counted.withColumn(STORED, F.lit(None).cast("bigint"))
        return counted.withColumn(OUTPUT, F.lit(number))

    def _read(self, relation: str, files: Sequence[str]) -> DataFrame:
        columns = self._writer.table(relation).columns
        return scanned(self._spark, self._writer.place, files, columns)

    def _erased(self, source: str) -> npt.NDArray[np.int64]:
        """The records of a source whose contents were erased, and may come again."""
        no = self._writer.catalog.source(f"{self._flow.name}/{source}").no
        rows = self._writer.query("SELECT id FROM erased WHERE source_no = ?", [no])
        found: npt.NDArray[np.int64] = rows["id"].to_numpy()
        return found

    def _relation(self, part: Part) -> str:
        name = f"{self._flow.name}/{part.name}"
        if part.kind == "records":
            return f"record_{self._writer.catalog.source(name).no}"
        return f"result_{self._sink(part.name).no}"

    def _sink(self, name: str) -> Any:
        return self._writer.catalog.sink(f"{self._flow.name}/{name}")

    @property
    def _spark(self) -> SparkSession:
        return self._flow.spark

    def _hand_on(self, added: Sequence[Added], query_id: str, batch: int) -> None:
        """Give results to the user's own writers: read from the files that are just written."""
        for name, sink in self._flow.sinks.items():
            if sink.write is None:
                continue
            known = self._sink(name)
            relation = f"result_{known.no}"
            files = [
                f"{self._writer.place.table(relation)}/{file.path}"
                for file in added
                if file.relation == relation
            ]
            if not files:
                continue
            if isinstance(sink.write, TableWriter):
                rows = read(self._writer.place, relation, added).drop_columns([SEQ, BASE])
                sink.write.take(query_id, batch, rows[ID].combine_chunks(), rows)
                continue
            own = [F.col(f"`{column}`") for column in known.schema.names]
            user = self._read(relation, files).select(F.col(ID).alias("result_id"), *own)
            if isinstance(sink.write, TopicWriter) and sink.write.origins:
                user = self._with_origins(user, known, added)
            given_on(sink.write, user, batch)

    def _read_letters(self, found: Sequence[Added]) -> dict[str, pa.Table]:
        """The messages that could not be decoded, by source."""
        place = self._writer.place
        return {name: read(place, where, found) for name, where in letters_of(found).items()}

    def _with_origins(self, user: DataFrame, sink: Any, added: Sequence[Added]) -> DataFrame:
        """Results with the sets of their records beside their own columns."""
        sources = {s.name: s.no for s in self._writer.catalog.sources_of(sink)}
        table = self._writer.place.table("edges")
        files = [f"{table}/{file.path}" for file in added if file.relation == "edges"]
        if files:
            edges = self._read("edges", files).filter(F.col("sink_no") == sink.no)
            sets = edges.groupBy("result_id").agg(
                *(
                    F.array_sort(
                        F.collect_list(F.when(F.col("source_no") == no, F.col("source_id")))
                    ).alias(ORIGINS + name)
                    for name, no in sources.items()
                )
            )
            user = user.join(sets, "result_id", "left")
        none = F.array().cast("array<bigint>")
        return user.withColumns(
            {
                ORIGINS + name: F.coalesce(F.col(f"`{ORIGINS}{name}`"), none) if files else none
                for name in sources
            }
        )

    def _new_files(self, added: Sequence[Added]) -> list[dict[str, Any]]:
        found = []
        for name, files in self._files.items():
            keys = {key for file in added for key in file.keys.get(name, ())}
            no = self._writer.catalog.source(f"{self._flow.name}/{name}").no
            found += [
                {"source_no": no, "file_key": key, "path": path}
                for key, path in files.numbered(keys).items()
            ]
        return found

    def _arrived(self, arrivals: Mapping[str, Sequence[Arrival]], seq: int) -> list[dict[str, Any]]:
        return [
            {
                "source_no": self._writer.catalog.source(f"{self._flow.name}/{name}").no,
                "seq": seq,
                "path": arrival.path,
                "modified": arrival.modified,
            }
            for name, found in arrivals.items()
            for arrival in found
        ]


def _rows(added: Sequence[Added], relation: str) -> int:
    return sum(file.rows for file in added if file.relation == relation)
