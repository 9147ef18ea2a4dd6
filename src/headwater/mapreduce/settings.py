"""What a map-reduce is told to do, checked before anything runs."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import pyarrow as pa

from headwater.errors import FlowError
from headwater.mapreduce.functions import (
    FunctionMap,
    FunctionReduce,
    MapStep,
    NativeMap,
    NativeReduce,
    ReduceStep,
    combine_step,
    map_step,
    reduce_step,
)
from headwater.mapreduce.records import Format
from headwater.mapreduce.windows import Window, window_of
from headwater.streams.declaration import require_name
from headwater.streams.schema import parse, text

if TYPE_CHECKING:
    from collections.abc import Callable

Capture = Literal["eager", "ancestors", "none"]

RESULT_ID, REDUCE, AT = "result_id", "reduce", "at"
"""The columns of a result beside its key and value."""

DEFAULT_SCHEMA = "word string, n bigint"


@dataclass(frozen=True, slots=True)
class Work:
    """What is done to files: all that a task needs to know."""

    format: Format
    map: MapStep
    reduce: ReduceStep
    combine: ReduceStep | None
    pairs: str
    """The columns of a map's outputs as DDL: the key's, then the value."""
    result: str
    """The column of a reduce's value."""
    eager: bool
    """Whether the records of each pair are kept with it."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of a map's outputs."""
        return parse(self.pairs)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of a key."""
        return tuple(self.schema.names[:-1])

    @property
    def value(self) -> pa.Field:
        """The column of a value."""
        return self.schema.field(len(self.schema) - 1)

    @property
    def counts(self) -> bool:
        """Whether values are counted as they are combined, and counts are then added up."""
        combine = self.combine
        return isinstance(combine, NativeReduce) and combine.aggregate.startswith("count(")

    @property
    def output(self) -> pa.Schema:
        """The key's columns and the result's."""
        return pa.schema([*list(self.schema)[:-1], *parse(self.result)])


@dataclass(frozen=True, slots=True)
class Settings:
    """A map-reduce: where its files come from, what is done to them, and where results go."""

    input: Path
    work: Work
    window: Window
    store: Path
    state: Path
    out: str
    name: str
    source: str
    capture: Capture
    streams: Path | None = None
    pattern: str = "*"
    settle: float = 1.0
    poll: float = 0.5
    once: bool = False

    @property
    def columns(self) -> pa.Schema:
        """The columns of a result in the store."""
        return pa.schema([(REDUCE, pa.int64()), *self.work.output])

    @property
    def published(self) -> str:
        """The columns of a result in the stream, as DDL."""
        own = [(RESULT_ID, pa.int64()), (REDUCE, pa.int64()), (AT, pa.timestamp("us", "UTC"))]
        return text(pa.schema([*own, *self.work.output]))

    @property
    def fingerprint(self) -> str:
        """What must stay as it is from start to start: results would not mean the same."""
        work = self.work
        told = [work.format, work.pairs, work.result, self.window, _shape(work.map)]
        told += [_shape(work.reduce), _shape(work.combine), self.out, self.source, self.capture]
        return hashlib.blake2b(repr(told).encode(), digest_size=16).hexdigest()


def given(
    input_dir: str | os.PathLike[str],
    *,
    map: str | Callable[[Any], Any],
    reduce: str | Callable[[Any, Any], Any],
    window: Window | str | int,
    store: str | os.PathLike[str],
    out: str,
    schema: str = DEFAULT_SCHEMA,
    result: str | None = None,
    combine: bool | str | Callable[[Any, Any], Any] | None = None,
    format: str = "text",
    columns: str | None = None,
    pattern: str = "*",
    streams: str | os.PathLike[str] | None = None,
    state: str | os.PathLike[str] | None = None,
    name: str | None = None,
    source: str | None = None,
    capture: str = "eager",
    settle: float = 1.0,
    poll: float = 0.5,
    once: bool = False,
) -> Settings:
    """Settings from what a user gives."""
    require_name(out)
    folder = Path(os.path.abspath(input_dir))
    if not folder.is_dir():
        raise FlowError(f"{folder} is no directory; make it, or give another")
    if capture not in get_args(Capture):
        raise FlowError(f"capture={capture!r} is none of {', '.join(get_args(Capture))}")
    if settle < 0 or poll <= 0:
        raise FlowError(f"settle={settle}, poll={poll}: seconds from 0 on, and above 0")
    pairs = _pairs(schema)
    value = pairs.field(len(pairs) - 1)
    reduced = reduce_step(reduce, value.name)
    combined = combine_step(combine, reduced, value.name)
    if reduce == "count" and combined not in (None, reduced):
        raise FlowError("reduce='count' counts values that a combiner would have made fewer")
    work = Work(
        format=Format.of(format, columns),
        map=map_step(map),
        reduce=reduced,
        combine=combined,
        pairs=text(pairs),
        result=text(_result(result, value, pairs, counts=reduce == "count")),
        eager=capture == "eager",
    )
    return Settings(
        input=folder,
        work=work,
        window=window_of(window),
        store=Path(os.path.abspath(store)),
        state=Path(os.path.abspath(state or Path(store) / "mapreduce" / (name or out))),
        out=out,
        name=name or out,
        source=source or ("lines" if format == "text" else "records"),
        capture=capture,  # type: ignore[arg-type] # checked above
        streams=None if streams is None else Path(streams),
        pattern=pattern,
        settle=settle,
        poll=poll,
        once=once,
    )


def _pairs(schema: str) -> pa.Schema:
    """The columns of a key and a value, of types that can be so."""
    found = parse(schema)
    if len(found) < 2:
        raise FlowError(
            f"schema={schema!r} has {len(found)} columns; it has the key's, and the value last: "
            f"{DEFAULT_SCHEMA!r}"
        )
    for field in list(found)[:-1]:
        kind = field.type
        if pa.types.is_floating(kind) or pa.types.is_nested(kind):
            raise FlowError(
                f"column {field.name!r} of schema={schema!r} can't be a key's: a number with a "
                "fraction is no identity, and what has parts goes as columns of their own"
            )
    for field in found:
        _require_free(field.name, schema)
    return found


def _result(result: str | None, value: pa.Field, pairs: pa.Schema, *, counts: bool) -> pa.Schema:
    if result is None:
        kind = pa.int64() if counts else value.type
        return pa.schema([pa.field(value.name, kind)])
    found = parse(result)
    if len(found) != 1:
        raise FlowError(f"result={result!r} has {len(found)} columns; it is one: 'mean double'")
    name = found.names[0]
    _require_free(name, result)
    if name.lower() in [key.lower() for key in pairs.names[:-1]]:
        raise FlowError(f"result={result!r}: column {name!r} is one of the key's; rename it")
    return found


def _require_free(name: str, told: str) -> None:
    if name.lower() in (RESULT_ID, REDUCE, AT):
        raise FlowError(f"column {name!r} of {told!r} is one that every result has; rename it")


def _shape(step: MapStep | ReduceStep | None) -> str:
    """What of a step is compared from start to start: of a function, only that it is one."""
    match step:
        case None:
            return "none"
        case FunctionMap(takes=takes):
            return f"function of {takes}"
        case FunctionReduce():
            return "function"
        case NativeMap() | NativeReduce():
            return repr(step)
