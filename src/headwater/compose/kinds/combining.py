"""Nodes of several streams: merge and join."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from headwater.compose.cardinality import FEWER, ONE, UNKNOWN, Cardinality
from headwater.compose.kinds.ends import EMPTY
from headwater.compose.kinds.operators import NATIVE, SQL
from headwater.compose.node import Node, Runtime, key
from headwater.compose.types.bindings import Bindings, Property
from headwater.compose.values import Choice, Duration, Either, Names, Number, Pairs, Text, Whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.compose.frozen import Table

_LAST = Either((Whole(1), Duration()), "a number of events or a length of time")
_SIZE = Either((Number(), Duration()), "a number or a length of time")
_ORDER = Either((Pairs(Names()), Names()), "columns, or {left: columns, right: columns}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge(Node):
    """The events of several streams, one after another as they arrive."""

    kind: ClassVar[str] = "merge"
    ports: ClassVar[tuple[int, int | None]] = (2, None)
    runtimes: ClassVar[tuple[Runtime, ...]] = NATIVE
    rigid: ClassVar[bool] = True

    bind: Table[Property] = field(
        default=EMPTY, metadata=key(Bindings(), "properties of an event by path")
    )

    @property
    def one_to_one(self) -> bool:
        """Each event comes out once, but of the sum of the streams."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Join(Node):
    """Pairs of events of two streams, or of a stream and a static table.

    `latest` takes the most recent event of the other stream at each event of the clock, `last` the
    last few, `window` those within a time, `value` those within a range of values. Of a column that
    both have and `on` does not name, the second one's is called `<port>_<column>`.
    """

    kind: ClassVar[str] = "join"
    ports: ClassVar[tuple[int, int | None]] = (2, 2)
    runtimes: ClassVar[tuple[Runtime, ...]] = NATIVE
    statics: ClassVar[bool] = True

    policy: str | None = field(
        default=None,
        metadata=key(
            Choice(("latest", "last", "window", "value")),
            "which events are paired; none for a static table",
        ),
    )
    on: tuple[str, ...] = field(default=(), metadata=key(Names(), "columns that are equal in both"))
    where: str | None = field(
        default=None, metadata=key(SQL, "window and tables: the condition of a pair")
    )
    how: str = field(
        default="inner",
        metadata=key(Choice(("inner", "left_outer")), "left_outer keeps what has no partner"),
    )
    clock: str | None = field(
        default=None,
        metadata=key(Text("a port"), "latest: whose events make pairs; the first port"),
    )
    left: int | str | None = field(
        default=None, metadata=key(_LAST, "last: how many events, or how long, of the first")
    )
    right: int | str | None = field(
        default=None, metadata=key(_LAST, "last: the same of the second")
    )
    within: str | None = field(
        default=None, metadata=key(Duration(), "window: how far apart two events may be")
    )
    left_on: str | None = field(default=None, metadata=key(SQL, "value: the first one's value"))
    right_on: str | None = field(default=None, metadata=key(SQL, "value: the second one's value"))
    size: float | str | None = field(
        default=None, metadata=key(_SIZE, "value: how far above the first one's")
    )
    order_by: Any = field(default=(), metadata=key(_ORDER, "what tells the order of arrival"))

    @property
    def natural(self) -> Cardinality:
        """Of a clocked join, for each event of the clock."""
        if self.policy != "latest":
            return UNKNOWN
        return ONE if self.how == "left_outer" else FEWER

    @property
    def one_to_one(self) -> bool:
        """A clocked outer join keeps the clock's label; others make their own."""
        return False

    @property
    def follows(self) -> str | None:
        """The clock, where each of its events comes out."""
        clocked = self.policy == "latest" and self.how == "left_outer"
        return self.clock_port if clocked and self.cardinality is None else None

    @property
    def clock_port(self) -> str | None:
        """The port whose events make pairs."""
        first = self.inputs[0].name if self.inputs else None
        return self.clock if self.clock is not None else first

    def contradictions(self) -> Iterator[str]:
        """Each policy has its own keys, and needs some of them."""
        allowed, needed = _KEYS[self.policy]
        for name in ("on", "where", "clock", "left", "right", "within", "left_on", "right_on"):
            if getattr(self, name) and name not in allowed:
                yield f"{name} means nothing for {_named(self.policy)}"
        missing = [name for name in needed if getattr(self, name) in (None, ())]
        if missing:
            yield f"{_named(self.policy)} needs {', '.join(missing)}"
        if self.policy is None and not self.on and self.where is None:
            yield "a join needs policy, or on or where for a static table"
        if self.policy == "window" and self.within is None and self.where is None:
            yield "policy window needs within, or where with a bound on the times of a pair"
        ports = [port.name for port in self.inputs]
        if self.clock is not None and len(ports) == 2 and self.clock not in ports:
            yield f"clock is one of the ports {', '.join(ports)}, not {self.clock!r}"
        if (
            self.policy == "latest"
            and self.how == "left_outer"
            and self.clock not in (None, *ports[:1])
        ):
            yield "how: left_outer keeps the clock's events: the clock must be the first port"
        if self.policy in ("last", "value") and self.how != "inner":
            yield f"how means nothing for {_named(self.policy)}"


_KEYS: dict[str | None, tuple[tuple[str, ...], tuple[str, ...]]] = {
    None: (("on", "where"), ()),
    "latest": (("on", "clock"), ()),
    "last": (("on", "left", "right"), ("left", "right")),
    "window": (("on", "where", "within"), ()),
    "value": (("on", "left_on", "right_on", "size"), ("left_on", "right_on", "size")),
}
"""What each policy may and must have."""


def _named(policy: str | None) -> str:
    return "a join with a static table" if policy is None else f"policy {policy}"
