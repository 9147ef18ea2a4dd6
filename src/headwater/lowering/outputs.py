"""One plan for a whole flow: the rows of every sink, tagged and united.

One streaming query runs them all, so that all sinks of a micro-batch commit together. A flow
with one sink and nothing to keep has just that sink's plan. Sources whose records' contents
are kept add a branch that holds the records themselves; a live graph adds one with the times of
records, and one for each session step with the rows that enter it; topics one with the messages
that can't be decoded.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headwater.columns import identity_hash, is_window, quoted
from headwater.flow import nodes
from headwater.flow.first_filters import wanted_first
from headwater.flow.terms import Ref, unaliased
from headwater.flow.windows import Session
from headwater.lowering.ancestors import Ancestors
from headwater.lowering.base import Lowering
from headwater.lowering.eager import Eager, as_array, origin
from headwater.lowering.identity import arrives_in_order, has_positions
from headwater.lowering.intervals import Intervals, ends, own
from headwater.lowering.plain import Plain
from headwater.lowering.rows import nullable
from headwater.lowering.sources import Sources, unmarked
from headwater.lowering.traced import marked
from headwater.lowering.tracing import last_moment
from headwater.names import KEY, ORDER, POSITION, PREFIX, RECORD, TIME
from headwater.service.tokens import one_query

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headwater.flow.expressions import Expr
    from headwater.lowering.tracing import Tracing

OUTPUT = "__hw_output"
ID = "__hw_id"
CONTENT = "__hw_content"
PAYLOAD = "__hw_payload_"

L = TypeVar("L", bound=Lowering[Any])

MODES: dict[str, type[Tracing]] = {mode.name: mode for mode in (Ancestors, Intervals, Eager)}
"""The capture modes that give provenance, cheapest first."""
EAGER = (Eager.name, frozenset[str]())
ANCESTORS = (Ancestors.name, frozenset[str]())
"""The lowering whose rows have keys and nothing more."""


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of row in the united plan.

    `results` of a sink, `records` of a source, the `times` of a source's records, the rows that
    enter a step of `sessions`, whose id is then their key, or a source's dead `letters`.
    """

    kind: Literal["results", "records", "times", "sessions", "letters"]
    name: str
    schema: StructType
    unique: bool = False
    capture: str = "none"
    origins: tuple[str, ...] = ()
    event_time: str | None = None
    """Without capture: the column that Spark marks as event time, if any is left."""


@dataclass(frozen=True, slots=True)
class Bare:
    """A tracing lowering of which only the user's columns are taken."""

    tracing: Tracing

    def lower(self, node: nodes.Node) -> DataFrame:
        """The rows of a step, without annotations."""
        rows = self.tracing.lower(node)
        return rows.df.select(*map(quoted, rows.columns))


@dataclass(frozen=True, slots=True)
class Outputs:
    """The united plan and what its rows are; `tagged` says that rows carry their part's number."""

    df: DataFrame
    parts: tuple[Part, ...]
    tagged: bool
    still: tuple[tuple[Part, DataFrame], ...] = ()
    """Records to keep of sources that do not stream beside others that do."""


@dataclass(frozen=True, slots=True)
class Live:
    """What a live graph has to be told: the times of records, the rows of sessions and steps."""

    sources: frozenset[str] = frozenset()
    sessions: tuple[nodes.Aggregate, ...] = ()
    steps: tuple[nodes.Node, ...] = ()
    """Steps whose rows are in the graph as well."""


@one_query()
def lower(
    flow_sinks: Mapping[str, nodes.Sink],
    captures: Mapping[str, str],
    spark: SparkSession,
    steps: Mapping[str, frozenset[str]] | None = None,
    live: Live | None = None,
    observed: Mapping[str, str] | None = None,
) -> Outputs:
    """The united plan of some sinks, each in its capture mode.

    `steps` has, by sink, the steps in terms of whose rows its provenance is wanted; `observed` the
    steps whose rows are counted, with the names to count them under.
    """
    live = live or Live()
    above = {sink: _sources(node) for sink, node in flow_sinks.items()}
    used = {node.name: node for found in above.values() for node in found}
    placed = {
        node.name
        for sink, found in above.items()
        for node in found
        if captures[sink] == "intervals" and has_positions(node)
    }
    in_order = {name: _in_order(node) for name, node in flow_sinks.items()}
    ordered = {
        node.name
        for sink, found in above.items()
        for node in found
        if in_order[sink] and arrives_in_order(node)
    }
    sources = Sources(spark, placed, ordered)
    plain = _counting(Plain(spark), observed, 0)
    keyed = any(in_order[name] or _by_keys(node) for name, node in flow_sinks.items())
    if any(capture != "none" for capture in captures.values()) or keyed:
        # Sinks without capture must share each source's watermark node with the others.
        plain.sources = {name: _bare(sources.frame(node)) for name, node in used.items()}
    kept = [node for node in used.values() if node.keep != "none"]
    plain.sources |= {node.name: _bare(sources.frame(node)) for node in kept}
    modes: dict[tuple[str, frozenset[str]], Tracing] = {}
    beside = frozenset(node.step for node in live.steps)

    def traced(sink: str) -> Tracing:
        """The lowering of a sink, shared with those that carry the same."""
        key = (captures[sink], (steps or {}).get(sink, frozenset()))
        if key not in modes:
            mode = MODES[key[0]]
            eager = mode is Eager
            made = Eager(sources, key[1], beside) if eager else mode(sources)
            modes[key] = _counting(made, observed, 1 + len(modes))
        return modes[key]

    # What Spark lacks needs the keys and the order of rows, whether or not they are traced. All
    # sinks without capture then go one way: a step's watermark is one node only within a lowering.
    if keyed and ANCESTORS not in modes:
        modes[ANCESTORS] = _counting(Ancestors(sources), observed, 1 + len(modes))
    bare = plain if not keyed else Bare(modes[ANCESTORS])

    def results(name: str, sink: nodes.Sink) -> tuple[Part, DataFrame]:
        if captures[name] != "none":
            return _traced_results(sink, traced(name))
        return _plain_results(sink, bare)

    branches = [results(name, sink) for name, sink in flow_sinks.items()]
    records = [_records(node, sources.frame(node)) for node in kept]
    streaming = any(df.isStreaming for _, df in branches)
    branches.extend(pair for pair in records if pair[1].isStreaming == streaming)
    branches.extend(
        _times(node, sources.unwatched(node), flow_sinks.values())
        for name, node in used.items()
        if name in live.sources and node.keep == "none" and node.streaming
    )
    # The watermark that a step sets is one node only within a lowering.
    whole = modes.setdefault(EAGER, Eager(sources, beside=beside))
    assert isinstance(whole, Eager)
    branches.extend(_session_rows(node, whole) for node in live.sessions)
    branches.extend(_step_rows(node, whole) for node in live.steps)
    branches.extend(
        (Part("letters", name, nullable(df.schema)), df)
        for name, node in used.items()
        if (df := sources.poisoned(node)) is not None
    )
    still = tuple(pair for pair in records if pair[1].isStreaming != streaming)
    if len(branches) == 1:
        part, df = branches[0]
        return Outputs(df, (part,), tagged=False, still=still)
    parts = tuple(part for part, _ in branches)
    return Outputs(_united(branches), parts, tagged=True, still=still)


def _counting(lowering: L, observed: Mapping[str, str] | None, number: int) -> L:
    """A lowering that counts rows under names of its own: Spark has no name twice in a plan."""
    lowering.observed = {step: f"{name}#{number}" for step, name in (observed or {}).items()}
    return lowering


def _sources(sink: nodes.Sink) -> list[nodes.Source]:
    return [node for node in sink.upstream() if isinstance(node, nodes.Source)]


def _bare(frame: DataFrame) -> DataFrame:
    return frame.drop(RECORD, POSITION, TIME, f"{ORDER}0")


def _in_order(sink: nodes.Sink) -> bool:
    """Whether a sink's results depend on the order in which rows arrive."""
    return any(isinstance(node, nodes.Ordered) for node in sink.upstream())


def _by_keys(sink: nodes.Sink) -> bool:
    """Whether a sink's results depend on the keys of rows: calls go by them, and groups' order."""
    kinds = (nodes.Service, nodes.GroupFunction)
    return any(isinstance(node, kinds) for node in sink.upstream())


def _plain_results(sink: nodes.Sink, plain: Plain | Bare) -> tuple[Part, DataFrame]:
    df = plain.lower(sink)
    times = marked(df.schema)
    event_time = times[0] if times else None
    return Part("results", sink.name, nullable(df.schema), event_time=event_time), df


def _traced_results(sink: nodes.Sink, mode: Tracing) -> tuple[Part, DataFrame]:
    rows = mode.lower(sink)
    sources = tuple(rows.origins)
    carried: list[Column] = []
    if isinstance(mode, Eager):
        carried = [as_array(rows, source) for source in sources]
    elif isinstance(mode, Intervals):
        carried = [own(rows, end).alias(end) for end in ends(sources)]
    columns = rows.columns
    df = rows.df.select(result_id(sink), F.col(TIME), *carried, *map(quoted, columns))
    shape = nullable(StructType([rows.df.schema[c] for c in columns]))
    return Part("results", sink.name, shape, rows.unique, mode.name, sources), df


def result_id(sink: nodes.Sink) -> Column:
    """The id of a sink's result, from its key."""
    return F.xxhash64(F.lit(sink.name), KEY).alias(ID)


def _records(source: nodes.Source, frame: DataFrame) -> tuple[Part, DataFrame]:
    names = source.schema.fieldNames()
    shape = nullable(StructType([frame.schema[c] for c in names]))
    df = frame.select(
        quoted(RECORD).alias(ID),
        F.col(TIME),
        identity_hash(shape.fields).alias(CONTENT),
        *map(quoted, names),
    )
    return Part("records", source.name, shape), df


def _times(
    source: nodes.Source, frame: DataFrame, sinks: Iterable[nodes.Node]
) -> tuple[Part, DataFrame]:
    """The ids and times of a source's records, without those that every path filters out."""
    wanted = wanted_first(source, sinks)
    kept = frame if wanted is None else frame.filter(wanted)
    df = kept.select(quoted(RECORD).alias(ID), F.col(TIME))
    return Part("times", source.name, StructType([])), df


def _step_rows(node: nodes.Node, eager: Eager) -> tuple[Part, DataFrame]:
    """The rows of a step, by their keys, with the records and rows of steps behind them."""
    rows = eager.lower(node)
    sources = tuple(source for source in rows.origins if source != node.step)
    sets = [as_array(rows, source) for source in sources]
    columns = rows.columns
    df = rows.df.select(F.col(KEY).alias(ID), F.col(TIME), *sets, *map(quoted, columns))
    shape = nullable(StructType([rows.df.schema[c] for c in columns]))
    return Part("results", node.step, shape, rows.unique, "eager", sources), df


def _makes_session(key: Expr) -> bool:
    return getattr(unaliased(key.term), "name", None) == "session_window"


def _session_rows(node: nodes.Aggregate, eager: Eager) -> tuple[Part, DataFrame]:
    """The rows that enter a session step, with the key and time that it takes them by."""
    rows = eager.lower(node.input)
    assert isinstance(node.window, Session)
    assert isinstance(node.window.time, Ref)
    keys = [e.column for e in node.keys if not _makes_session(e)]
    time = F.col(node.window.time.text())
    if is_window(rows.df.select(time).schema[0].dataType):
        time = last_moment(time)
    df = rows.df.select(
        *(key.alias(f"{PREFIX}key_{i}") for i, key in enumerate(keys)),
        unmarked(time),
        *(as_array(rows, source) for source in rows.origins),
    )
    # Grouped values are compared, not shown: their hash is as good as they are.
    named = df.schema.fields[: len(keys)]
    df = df.withColumn(ID, identity_hash(named)).drop(*(field.name for field in named))
    return Part("sessions", node.step, StructType([]), True, "eager", tuple(rows.origins)), df


def _carried(part: Part) -> list[tuple[str, str]]:
    """The columns of a part's provenance, with their types."""
    match part.capture:
        case "eager":
            return [(origin(source), "array<bigint>") for source in part.origins]
        case "intervals":
            return [(end, "bigint") for end in ends(part.origins)]
    return []


def _united(branches: list[tuple[Part, DataFrame]]) -> DataFrame:
    """All branches in one shape: the part's number, the fixed columns, a struct for each part."""
    carried = dict(sorted(item for part, _ in branches for item in _carried(part)))
    fixed = {ID: "bigint", CONTENT: "bigint", **carried}

    def shaped(number: int, part: Part, df: DataFrame) -> DataFrame:
        def or_null(name: str, spark_type: str) -> Column:
            there = name in df.columns
            return quoted(name) if there else F.lit(None).cast(spark_type).alias(name)

        shown = [at for at, (part, _) in enumerate(branches) if part.schema.fields]

        def payload(other: int) -> Column:
            schema = branches[other][0].schema
            mine = F.struct(*map(quoted, schema.fieldNames())) if other == number else F.lit(None)
            return mine.cast(schema).alias(f"{PAYLOAD}{other}")

        time = or_null(TIME, "timestamp")
        return df.select(
            F.lit(number).alias(OUTPUT),
            *(or_null(name, spark_type) for name, spark_type in fixed.items()),
            time,
            *map(payload, shown),
        )

    frames = [shaped(number, part, df) for number, (part, df) in enumerate(branches)]
    return reduce(DataFrame.union, frames)
