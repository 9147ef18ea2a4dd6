"""The driver's part of a live graph on a lake: it says who does what, and knows no record."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headwater.flow.reach import OWN_BATCH
from headwater.live.graph import LAST, Moment
from headwater.live.parallel import records, rows, sessions
from headwater.live.parallel.came import SESSIONS, SESSIONS_COLUMNS, TIMES, TIMES_COLUMNS, Came
from headwater.live.parallel.state import Folder, State
from headwater.store.lake.scanning import scanned
from headwater.store.lake.tasks import TOLD, told
from headwater.times import micros

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import Column, SparkSession

    from headwater.flow.flow import Flow
    from headwater.live.planning import Plan
    from headwater.store.lake.tables import Added
    from headwater.store.lake.writer import LakeWriter

_EDGES = "seq bigint, sink_no smallint, result_id bigint, source_no smallint, source_id bigint"
_VERTICES = "seq bigint, source_no smallint, id bigint, event_time timestamp"


class SpreadGraph:
    """The live graph of a flow on a lake, batch by batch."""

    def __init__(self, plan: Plan, flow: Flow, writer: LakeWriter, query_id: str) -> None:
        self._plan, self._spark, self._writer = plan, flow.spark, writer
        self._folder = Folder(writer.place, flow.name)
        numbers = {one.name: one.no for one in writer.catalog.sources if one.flow == flow.name}
        self._sources = {numbers[name]: (name, reach) for name, reach in plan.reaches.items()}
        self._recurring = [
            no
            for no, (name, _) in self._sources.items()
            if flow.sources[name].identity.how != "position"
        ]
        bounded = {no: pair for no, pair in self._sources.items() if pair[0] in plan.bounded}
        names = sorted({step for _, reach in bounded.values() for step in reach.sessions})
        self._steps = tuple(
            (step, {no: reach for no, (_, reach) in bounded.items() if step in reach.sessions})
            for step in names
        )
        self.came = Came(
            self._folder.name,
            {name: no for no, (name, _) in bounded.items()},
            tuple(
                (step, tuple(self._sources[no][0] for no in reaches))
                for step, reaches in self._steps
            ),
        )
        self._seq = writer.last_seq(query_id)
        self._state = self._folder.read(self._seq, _shards(flow.spark))
        known = micros(writer.watermark(query_id))
        self._watermark = OWN_BATCH if known is None else known
        self._next: tuple[int, State, int, list[str]] | None = None
        self.latest: dict[str, int] = {}
        """By source, the latest time that the batch at hand brought."""

    @property
    def watermark(self) -> int:
        """The latest watermark (µs)."""
        return self._watermark

    @property
    def is_waiting(self) -> bool:
        """Whether a later watermark would let go of some record."""
        return self._state.waiting > 0 or bool(self._state.sessions)

    def changes(
        self, seq: int, added: Sequence[Added], watermark: int | None, *, last: bool
    ) -> list[Added]:
        """The files of a batch, with those of the vertices and labels that it adds.

        `added` are the files of the batch, with what it brings to the graph among them.
        """
        own = {self.came.relation(kind): kind for kind in (TIMES, SESSIONS)}
        came: dict[str, list[str]] = {TIMES: [], SESSIONS: []}
        for file in added:
            if file.relation in own:
                came[own[file.relation]].append(self._address(file))
        batch = [file for file in added if file.relation not in own]
        edges = [self._address(file) for file in batch if file.relation == "edges"]
        previous = self._watermark
        now = max(previous, OWN_BATCH if watermark is None else watermark)
        self.latest = {}
        state, written = self._state, []
        if edges or came[TIMES] or came[SESSIONS] or now > previous or last:
            lines = self._advanced(seq, Moment(now, previous), edges, came, last=last)
            written = [line for line in lines if line.relation in ("vertices", "labels")]
            state = self._noted(lines)
        self._folder.write(seq, state)
        prefix = f"{self._folder.name}/"
        spent = [
            f"{file.relation}/{file.path}".removeprefix(prefix)
            for file in added
            if file.relation in own
        ]
        self._next = seq, state, now, spent
        return [*batch, *written]

    def accept(self) -> None:
        """The batch is committed: what it replaced may go."""
        assert self._next is not None
        seq, state, self._watermark, spent = self._next
        self._next = None
        self._folder.remove([*spent, *(self._state.files() - state.files())])
        if self._seq is not None:
            self._folder.forget(self._seq)
        self._seq, self._state = seq, state

    def _advanced(
        self,
        seq: int,
        at: Moment,
        edges: Sequence[str],
        came: dict[str, list[str]],
        *,
        last: bool,
    ) -> list[Added]:
        """Have the shards take a batch; what they wrote."""
        shards = self._state.shards
        parts = [*self._reached(edges), *self._times(came[TIMES])]
        if self._steps:
            parts.append(self._held(seq, at, came[SESSIONS]))
        asked = self._spark.range(shards).select(
            F.col("id").cast("int").alias("shard"), *_row(-1, rows.ASKED, F.lit(0), F.lit(0))
        )
        shard = F.pmod(F.xxhash64("id"), F.lit(shards)).cast("int").alias("shard")
        whole = reduce(DataFrame.unionAll, (part.select(shard, "*") for part in parts), asked)
        task = records.Records(
            self._writer.place,
            self._folder.name,
            seq,
            Moment(LAST if last else at.watermark, at.previous),
            self._plan.expiry,
            self._sources,
            self._state.records,
        )
        spread = whole.repartitionById(shards, F.col("shard"))
        return told(spread.mapInArrow(task, TOLD).toArrow())

    def _read(self, files: Sequence[str], columns: str) -> DataFrame:
        return scanned(self._spark, self._writer.place, files, columns)

    def _reached(self, edges: Sequence[str]) -> Iterable[DataFrame]:
        """The records that the batch has edges to, and those of them that are vertices."""
        if not edges:
            return
        found = self._read(edges, _EDGES).withColumnRenamed("source_id", "id")
        yield found.select(*_row(F.col("source_no"), rows.REACHED, F.col("id"), F.lit(0)))
        vertices = self._writer.files("vertices")
        if self._recurring and vertices:
            known = self._read(vertices, _VERTICES).select("source_no", "id")
            again = found.filter(F.col("source_no").isin(self._recurring))
            again = known.join(again, ["source_no", "id"], "left_semi")
            yield again.select(*_row(F.col("source_no"), rows.KNOWN, F.col("id"), F.lit(0)))

    def _times(self, files: Sequence[str]) -> Iterable[DataFrame]:
        if files:
            found = self._read(files, TIMES_COLUMNS)
            yield found.select(*_row(F.col("source_no"), rows.CAME, F.col("id"), F.col("time")))

    def _held(self, seq: int, at: Moment, files: Sequence[str]) -> DataFrame:
        """The records that sessions hold, by the shards of their keys."""
        shards = self._state.shards
        empty = [F.lit(None).cast(kind) for kind in ("smallint", "smallint", *["bigint"] * 3)]
        entered = self._spark.range(shards).select(F.col("id").cast("int").alias("shard"), *empty)
        if files:
            found = self._read(files, SESSIONS_COLUMNS)
            shard = F.pmod(F.xxhash64("key"), F.lit(shards)).cast("int")
            entered = entered.unionAll(found.select(shard, "*"))
        named = entered.toDF("shard", "step", "source_no", "key", "time", "id")
        task = sessions.Sessions(
            self._writer.place, self._folder.name, seq, at, self._steps, self._state.sessions
        )
        return named.repartitionById(shards, F.col("shard")).mapInArrow(task, sessions.HELD)

    def _noted(self, lines: Iterable[Added]) -> State:
        """The state as the shards have left it."""
        before = self._state
        kept, waiting = dict(before.records), 0
        held: dict[str, tuple[str, ...]] = {}
        for line in lines:
            shard = str(line.stats.get("shard"))
            if line.relation == f"{self._folder.name}/{sessions.FOLDER}":
                held[shard] = (f"{sessions.FOLDER}/{line.path}",)
            elif line.relation == f"{self._folder.name}/{records.FOLDER}":
                runs = () if line.stats["anew"] else kept.get(shard, ())
                new = (f"{records.FOLDER}/{line.path}",) if line.path else ()
                kept[shard] = (*runs, *new)
                waiting += line.stats["waiting"]
                for name, (time,) in line.keys.items():
                    self.latest[name] = max(time, self.latest.get(name, time))
        return State(before.shards, kept, held, waiting)

    def _address(self, file: Added) -> str:
        return f"{self._writer.place.table(file.relation)}/{file.path}"


def _row(source_no: Column | int, kind: int, id_: Column, value: Column) -> list[Column]:
    number = F.lit(source_no) if isinstance(source_no, int) else source_no
    return [
        number.cast("smallint").alias("source_no"),
        F.lit(kind).cast("tinyint").alias("kind"),
        id_.cast("bigint").alias("id"),
        value.cast("bigint").alias("value"),
        F.lit(None).cast("string").alias("told"),
    ]


def _shards(spark: SparkSession) -> int:
    """Into how many shards a new graph goes: enough for every core, and no more than shuffles."""
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 200)
    return max(1, min(partitions, 2 * spark.sparkContext.defaultParallelism))
