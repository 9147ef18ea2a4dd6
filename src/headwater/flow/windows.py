"""Intervals and windows: what an aggregate's keys say about time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from headwater.errors import FlowError
from headwater.flow.jvm import scala_object, spark_jvm
from headwater.flow.terms import Call, Literal, Term, unaliased

if TYPE_CHECKING:
    from headwater.flow.expressions import Expr


@cache
def microseconds(text: str) -> int:
    """The length of an interval such as `10 minutes`, in microseconds, as Spark reads it."""
    jvm = spark_jvm()
    utf8 = jvm.org.apache.spark.unsafe.types.UTF8String.fromString(text)
    utils = scala_object(jvm.org.apache.spark.sql.catalyst.util, "IntervalUtils")
    try:
        interval = utils.safeStringToInterval(utf8)
    except Exception as error:
        raise FlowError(f"Spark can't read {text!r} as an interval") from error
    if interval is None:
        raise FlowError(f"{text!r} is not an interval; write for instance '10 minutes'")
    return int(utils.getDuration(interval, jvm.java.util.concurrent.TimeUnit.MICROSECONDS, 31))


@dataclass(frozen=True, slots=True)
class Window:
    """A time window among an aggregate's keys; sizes in microseconds."""

    column: str
    time: Term
    size: int
    slide: int
    offset: int = 0


SESSION_MARK = "spark.sessionWindow"
"""In the metadata of a column: Spark takes its windows for sessions."""


@dataclass(frozen=True, slots=True)
class Session:
    """A session window among an aggregate's keys; a gap that is an expression has no constant."""

    column: str
    time: Term
    gap: int | None
    gap_term: Term


def window_of(expr: Expr, *, what: str) -> Window | Session | None:
    """The window that a group key makes, if it makes one."""
    term = unaliased(expr.term)
    if not isinstance(term, Call) or term.name not in ("window", "session_window"):
        return None
    name = expr.name or term.name
    if term.name == "session_window":
        gap = term.args[1]
        constant = microseconds(gap.value) if isinstance(gap, Literal) else None
        return Session(name, term.args[0], constant, gap)
    sizes = [_constant_interval(arg, what) for arg in term.args[1:]]
    size = sizes[0]
    slide = sizes[1] if len(sizes) > 1 else size
    return Window(name, term.args[0], size, slide, sizes[2] if len(sizes) > 2 else 0)


def _constant_interval(term: Term, what: str) -> int:
    if isinstance(term, Literal):
        return microseconds(term.value) if isinstance(term.value, str) else int(term.value)
    raise FlowError(f"{what}: a window's size must be a constant, not {term}")
