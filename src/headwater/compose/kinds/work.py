"""Streamflow nodes: functions, services and long jobs, one event out for each in."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from headwater.compose.addresses import CALL, Call, Target
from headwater.compose.cardinality import ONE, UNKNOWN, Cardinality
from headwater.compose.kinds.ends import EMPTY
from headwater.compose.kinds.operators import SQL, clash
from headwater.compose.node import Node, Runtime, exactly_one, key
from headwater.compose.steps import Steps
from headwater.compose.structures import Schemas
from headwater.compose.types.bindings import Bindings, Property
from headwater.compose.values import (
    Choice,
    Duration,
    Either,
    Flag,
    Names,
    Pairs,
    Plain,
    Text,
    Whole,
)
from headwater.compose.windows import Window, Windows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.compose.frozen import Table

_REQUEST = Either((Pairs(SQL), Names()), "columns, or names with SQL")
_PER = Either((Choice(("event",)), Windows(("count", "time"), batches=True)), "event or a window")
_STATIC = key(Pairs(Plain()), "values that are the same for all events, by name")
_TAKES = key(Duration(seconds=True), "the time that one event is expected to take")


@dataclass(frozen=True, slots=True, kw_only=True)
class Function(Node):
    """What a Python function makes of each event; static inputs are repeated for each."""

    kind: ClassVar[str] = "function"
    ports: ClassVar[tuple[int, int | None]] = (1, None)
    runtimes: ClassVar[tuple[Runtime, ...]] = ("functions", "jobs")
    promotable: ClassVar[bool] = True
    statics: ClassVar[bool] = True

    call: str = field(metadata=key(Call(), "the function"))
    schema: str = field(metadata=key(Schemas(), "the columns that it makes"))
    keep: tuple[str, ...] = field(
        default=(), metadata=key(Names(), "columns that pass beside them unchanged")
    )
    batches: str | None = field(
        default=None, metadata=key(Choice(("arrow", "pandas")), "what it takes its events as")
    )
    many: bool = field(
        default=False, metadata=key(Flag(), "it takes a row and makes any number of them")
    )
    static: Table[Any] = field(default=EMPTY, metadata=_STATIC)
    bind: Table[Property] = field(
        default=EMPTY, metadata=key(Bindings(), "properties of a result by path")
    )
    takes: str | float | None = field(default=None, metadata=_TAKES)

    @property
    def natural(self) -> Cardinality:
        """One for each, unless it may make many."""
        return UNKNOWN if self.many else ONE

    def contradictions(self) -> Iterator[str]:
        """A value is static or an input."""
        yield from clash([port.name for port in self.inputs], self.static, "from and static")
        if self.many and self.batches:
            yield "batches means nothing with many: such a function takes one row"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service(Node):
    """The answers of a service, called for each event; `.failures` are those without one."""

    kind: ClassVar[str] = "service"
    ports: ClassVar[tuple[int, int | None]] = (1, None)
    outputs: ClassVar[tuple[str, ...]] = ("failures",)
    runtimes: ClassVar[tuple[Runtime, ...]] = ("functions", "jobs")
    promotable: ClassVar[bool] = True
    statics: ClassVar[bool] = True

    target: str = field(
        metadata=key(Target(), "a URL, to which each event is posted, or a function")
    )
    response: str = field(metadata=key(Schemas(), "the columns of an answer"))
    request: Any = field(
        default=None, metadata=key(_REQUEST, "the columns that are sent; all by default")
    )
    static: Table[Any] = field(default=EMPTY, metadata=_STATIC)
    concurrency: int = field(default=8, metadata=key(Whole(1), "calls at the same time"))
    retries: int = field(default=2, metadata=key(Whole(), "calls after a failed one"))
    timeout: float | str = field(
        default=10.0, metadata=key(Duration(seconds=True), "how long to wait for an answer")
    )
    backoff: float | str = field(
        default=0.2,
        metadata=key(Duration(seconds=True, zero=True), "how long to wait before the first retry"),
    )
    bind: Table[Property] = field(
        default=EMPTY, metadata=key(Bindings(), "properties of an answer by path")
    )
    takes: str | float | None = field(default=None, metadata=_TAKES)

    @property
    def is_url(self) -> bool:
        """Whether it is called by HTTP."""
        return re.fullmatch(CALL, self.target) is None

    def contradictions(self) -> Iterator[str]:
        """A value is static or an input."""
        yield from clash([port.name for port in self.inputs], self.static, "from and static")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Node):
    """A long task for each event or window, queued durably; `.failures` are those given up."""

    kind: ClassVar[str] = "job"
    ports: ClassVar[tuple[int, int | None]] = (1, None)
    outputs: ClassVar[tuple[str, ...]] = ("failures",)
    runtimes: ClassVar[tuple[Runtime, ...]] = ("jobs",)
    promotable: ClassVar[bool] = True
    statics: ClassVar[bool] = True

    run: str | None = field(
        default=None, metadata=key(Text("a command"), "a command, the event on its standard input")
    )
    call: str | None = field(
        default=None, metadata=key(Call(), "or a Python function of the event")
    )
    spark: str | None = field(
        default=None, metadata=key(Call(), "or a Python function of a Spark session and the event")
    )
    steps: Table[Table[Any]] | None = field(
        default=None,
        metadata=key(Steps(), "or several of these by name, each after those that it names"),
    )
    schema: str | None = field(default=None, metadata=key(Schemas(), "the columns of its result"))
    per: str | Window = field(
        default="event", metadata=key(_PER, "a task for each event, or for {count: n} or {time: t}")
    )
    slots: int = field(default=1, metadata=key(Whole(1), "tasks at the same time"))
    retries: int = field(default=2, metadata=key(Whole(), "tries after a failed one"))
    backoff: float | str = field(
        default=1.0,
        metadata=key(Duration(seconds=True, zero=True), "how long to wait before the first retry"),
    )
    timeout: float | str | None = field(
        default=None,
        metadata=key(Duration(seconds=True), "how long a task may take; unbounded by default"),
    )
    static: Table[Any] = field(default=EMPTY, metadata=_STATIC)
    bind: Table[Property] = field(
        default=EMPTY, metadata=key(Bindings(), "properties of a result by path")
    )
    takes: str | float | None = field(default=None, metadata=_TAKES)

    @property
    def natural(self) -> Cardinality:
        """One for each event, or for each window."""
        if isinstance(self.per, str):
            return ONE
        return UNKNOWN if self.per.count is None else Cardinality(Fraction(1, self.per.count))

    @property
    def one_to_one(self) -> bool:
        """Only with a task for each event."""
        known = self.known
        return known.is_one and (isinstance(self.per, str) or self.cardinality is not None)

    def contradictions(self) -> Iterator[str]:
        """A job does one thing; a value is static, an input or a step's output."""
        yield from exactly_one(self, "run", "call", "spark", "steps")
        ports, steps = [port.name for port in self.inputs], self.steps or ()
        yield from clash(ports, self.static, "from and static")
        # A function has them all as keywords; the only input is the event.
        yield from clash(steps, self.static, "steps and static")
        yield from clash(steps, ports if len(ports) > 1 else (), "steps and from")
