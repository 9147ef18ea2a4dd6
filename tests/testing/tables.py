"""Small flows by hand and small tables of text, for tests without Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

from pyspark.sql.types import IntegerType, LongType, StructField, StructType, TimestampType

from headwater.flow import nodes
from headwater.flow.expressions import Expr
from headwater.flow.terms import As, Call, Literal, Ref, Star, Term
from headwater.flow.windows import Session, Window
from headwater.testing import Counters, Input, Struct, interpret

ZERO = datetime(2024, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
TYPES = {"ts": TimestampType(), "id": LongType()}


def col(name: str) -> Ref:
    """A column."""
    return Ref(tuple(name.split(".")))


def lit(value: Any) -> Literal:
    """A number."""
    return Literal(value, "int")


def seconds(n: int) -> Literal:
    """An interval."""
    return Literal(n * SECOND, "interval second")


def call(name: str, *args: Term) -> Call:
    """A function or operator applied."""
    return Call(name, args)


def named(term: Term, name: str) -> As:
    """An expression under a name."""
    return As(term, (name,))


COUNT = named(call("count", Star()), "n")


def expr(term: Term) -> Expr:
    """An expression without a Spark column: the interpreter looks at the term only."""
    return Expr(term, cast(Any, None))


def source(
    name: str = "a", delay: str | None = "0 seconds", columns: str = "id ts k v"
) -> nodes.Source:
    """A stream of small integers with event time `ts` and id `id`."""
    fields = [StructField(n, TYPES.get(n, IntegerType())) for n in columns.split()]
    return nodes.Source(
        step=name,
        schema=StructType(fields),
        streaming=True,
        identity=nodes.Identity("column", ("id",)),
        event_time="ts",
        watermark=delay,
    )


def window(time: str, size: int, slide: int = 0, offset: int = 0) -> tuple[Term, Window]:
    """A window as a key, and as the aggregate knows it; in seconds."""
    made = Window("window", col(time), size * SECOND, (slide or size) * SECOND, offset * SECOND)
    return call("window", col(time)), made


def session(time: str, gap: int) -> tuple[Term, Session]:
    """A session window as a key, and as the aggregate knows it; in seconds."""
    key = call("session_window", col(time), seconds(gap))
    return key, Session("session_window", col(time), gap * SECOND, seconds(gap))


def aggregate(
    above: nodes.Node,
    *keys: str,
    over: tuple[Term, Window | Session] | None = None,
    step: str = "aggregate",
    columns: tuple[Term, ...] = (COUNT,),
) -> nodes.Aggregate:
    """An aggregate by keys and perhaps a window, which comes last."""
    terms: list[Term] = [col(key) for key in keys]
    return nodes.Aggregate(
        step=step,
        inputs=(above,),
        keys=tuple(map(expr, [*terms, over[0]] if over else terms)),
        columns=tuple(map(expr, columns)),
        window=over[1] if over else None,
    )


def parse(text: str) -> list[dict[str, list[tuple[Any, ...]]]]:
    """Batches from lines `batch source values…`; `ts` is the second value, `-` is null."""
    batches: list[dict[str, list[tuple[Any, ...]]]] = []
    for line in text.strip().splitlines():
        number, name, *values = line.split()
        while len(batches) <= int(number):
            batches.append({})
        parsed: list[Any] = [None if v == "-" else int(v) for v in values]
        if parsed[1] is not None:
            parsed[1] = ZERO + timedelta(seconds=parsed[1])
        batches[int(number)].setdefault(name, []).append(tuple(parsed))
    return batches


def lines_as_places(text: str) -> list[dict[str, list[int]]]:
    """Places by which the rows of all sources arrive in the order of a table's lines."""
    places: list[dict[str, list[int]]] = []
    for at, line in enumerate(text.strip().splitlines()):
        number, name, *_ = line.split()
        while len(places) <= int(number):
            places.append({})
        places[int(number)].setdefault(name, []).append(at)
    return places


def run(
    above: nodes.Node,
    text: str,
    watermarks: list[int] | None = None,
    *,
    counters: Counters | None = None,
    interleaved: bool = False,
    **options: Any,
) -> list[str]:
    """A sink's results in lines `batch: values @event-time {records}`; watermarks in seconds.

    Batches beyond the table are without data. A watermark of 0 is Spark's first one. The rows of
    each source are in order; `interleaved` also those of different sources, line by line.
    """
    batches = parse(text)
    watermarks = [0] * len(batches) if watermarks is None else watermarks
    batches += [{} for _ in range(len(watermarks) - len(batches))]
    start = int(ZERO.timestamp())
    places = lines_as_places(text) if interleaved else []
    places += [{} for _ in range(len(watermarks) - len(places))]
    given = Input(batches, [(start + w) * 1000 if w else 0 for w in watermarks], {}, places)
    sink = nodes.Sink(step="out", inputs=(above,))
    found = interpret(sink, given, counters=counters, **options)
    lines = []
    for r in found:
        values = " ".join(_shown(v) for v in r.values)
        ids = " ".join(f"{name}{id_}" for name, id_ in sorted(r.provenance))
        lines.append(f"{r.batch}: {values} @{_shown(r.event_time)} {{{ids}}}")
    return sorted(lines)


def _shown(value: Any) -> str:
    match value:
        case None:
            return "-"
        case datetime():
            return f"{(value - ZERO) / timedelta(seconds=1):.6f}".rstrip("0").rstrip(".")
        case Struct(fields=fields):
            return "-".join(_shown(v) for _, v in fields)
        case tuple():
            return f"[{','.join(map(_shown, value))}]"
    return str(value)


def table(text: str) -> list[str]:
    """Expected lines."""
    return sorted(line.strip() for line in text.strip().splitlines())
