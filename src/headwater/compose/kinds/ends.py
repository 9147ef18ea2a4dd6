"""Where a flow begins and ends: sources, static steps, sinks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from headwater.compose.addresses import Call
from headwater.compose.frozen import Table
from headwater.compose.node import Node, Runtime, exactly_one, key, needs
from headwater.compose.structures import NAME, Alerts, Port, Ports, Schemas
from headwater.compose.types.bindings import Bindings, Property
from headwater.compose.values import Choice, Duration, Flag, Names, Number, Pairs, Plain, Text

if TYPE_CHECKING:
    from collections.abc import Iterator

STREAM = Text("the name of a stream", NAME.replace("_-]", "_.-]"), "radar")
EMPTY: Table[Any] = Table()


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Node):
    """A stream from outside (a generator): a named one, or what Spark reads."""

    kind: ClassVar[str] = "source"
    ports: ClassVar[tuple[int, int | None]] = (0, None)
    statics: ClassVar[bool] = True
    lacks: ClassVar[tuple[str, ...]] = ("cardinality", "runtime")

    inputs: tuple[Port, ...] = field(
        default=(), metadata=key(Ports(), "static nodes that it needs to begin", "from")
    )
    stream: str | None = field(default=None, metadata=key(STREAM, "the named stream to read"))
    format: str | None = field(
        default=None, metadata=key(Text("a format of Spark's"), "or the format Spark reads")
    )
    path: str | None = field(default=None, metadata=key(Text("a path"), "where the files are"))
    options: Table[Any] = field(default=EMPTY, metadata=key(Pairs(Plain()), "the reader's options"))
    schema: str | None = field(default=None, metadata=key(Schemas(), "the columns of an event"))
    event_time: str | None = field(
        default=None, metadata=key(Text("a column"), "the column with an event's time")
    )
    watermark: str | None = field(
        default=None, metadata=key(Duration(zero=True), "how long to wait for late events")
    )
    id: tuple[str, ...] = field(
        default=(), metadata=key(Names(), "the column or columns that identify an event")
    )
    keep: str | None = field(
        default=None,
        metadata=key(
            Choice(("none", "contributing", "alive", "all")), "which events the store keeps"
        ),
    )
    bind: Table[Property] = field(
        default=EMPTY, metadata=key(Bindings(), "properties of an event by path")
    )
    rate: float | None = field(
        default=None, metadata=key(Number(), "events a second that are expected")
    )

    def contradictions(self) -> Iterator[str]:
        """A source reads one thing."""
        yield from exactly_one(self, "stream", "format")
        yield from needs(self, "path", "format")
        yield from needs(self, "options", "format")
        yield from needs(self, "watermark", "event_time")


@dataclass(frozen=True, slots=True, kw_only=True)
class Static(Node):
    """A step of a pure workflow: run once, its result reused for every event."""

    kind: ClassVar[str] = "static"
    ports: ClassVar[tuple[int, int | None]] = (0, None)
    runtimes: ClassVar[tuple[Runtime, ...]] = ("functions", "jobs")
    promotable: ClassVar[bool] = True
    statics: ClassVar[bool] = True

    inputs: tuple[Port, ...] = field(
        default=(), metadata=key(Ports(), "what the call reads", "from")
    )
    value: Any = field(default=None, metadata=key(Plain(), "a value as it stands"))
    call: str | None = field(
        default=None, metadata=key(Call(), "or a Python function of its inputs")
    )
    format: str | None = field(
        default=None, metadata=key(Text("a format of Spark's"), "or the format of a table")
    )
    path: str | None = field(default=None, metadata=key(Text("a path"), "where the table is"))
    options: Table[Any] = field(default=EMPTY, metadata=key(Pairs(Plain()), "the reader's options"))
    schema: str | None = field(
        default=None, metadata=key(Schemas(), "the columns of the table or the result")
    )
    static: Table[Any] = field(
        default=EMPTY, metadata=key(Pairs(Plain()), "values that the call also takes, by name")
    )

    def contradictions(self) -> Iterator[str]:
        """A static node is one thing, and only a call reads others."""
        yield from exactly_one(self, "value", "call", "format")
        yield from needs(self, "path", "format")
        yield from needs(self, "options", "format")
        yield from needs(self, "inputs", "call")
        yield from needs(self, "static", "call")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink(Node):
    """The end of a path: events published as a named stream, or sent as alerts."""

    kind: ClassVar[str] = "sink"
    runtimes: ClassVar[tuple[Runtime, ...]] = ("operators", "functions", "jobs")
    lacks: ClassVar[tuple[str, ...]] = ("cardinality", "runtime")

    stream: str | None = field(default=None, metadata=key(STREAM, "the named stream to publish"))
    append: bool = field(
        default=False, metadata=key(Flag(), "publish into the stream even if there is one already")
    )
    alert: Table[Any] | None = field(
        default=None, metadata=key(Alerts(), "a webhook or email addresses to tell")
    )

    def contradictions(self) -> Iterator[str]:
        """A sink goes somewhere."""
        if self.stream is None and self.alert is None:
            yield "a sink needs stream, alert or both"
        yield from needs(self, "append", "stream")
