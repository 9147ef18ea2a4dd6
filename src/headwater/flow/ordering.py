"""Steps over arrival order: their parameters checked, their nodes made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql.types import NumericType, TimestampType

from headwater.errors import FlowError, UnsupportedError
from headwater.flow import expressions as ex
from headwater.flow import nodes
from headwater.flow.arrival import why_unordered
from headwater.flow.callsite import callsite
from headwater.flow.terms import Call, Literal, Star, unaliased
from headwater.flow.windows import microseconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.flow.frame import Frame

ColumnOrName = Column | str

_FUNCTIONS = {
    "count": "count",
    "sum": "sum",
    "min": "min",
    "max": "max",
    "avg": "avg",
    "mean": "avg",
    "first": "first",
    "first_value": "first",
    "last": "last",
    "last_value": "last",
    "collect_list": "collect_list",
    "array_agg": "collect_list",
    "collect_set": "collect_set",
    "stddev": "stddev_samp",
    "std": "stddev_samp",
    "stddev_samp": "stddev_samp",
    "stddev_pop": "stddev_pop",
    "variance": "var_samp",
    "var_samp": "var_samp",
    "var_pop": "var_pop",
}


class WindowedFrame:
    """Windows of a frame's rows, waiting for their keys and aggregates."""

    __slots__ = ("_by", "_frame", "_kind", "_method", "_parameters")

    def __init__(
        self, frame: Frame, kind: type[nodes.Node], method: str, parameters: dict[str, Any]
    ) -> None:
        self._frame = frame
        self._kind = kind
        self._method = method
        self._parameters = parameters
        self._by: tuple[ex.Expr, ...] = ()

    def by(self, *cols: ColumnOrName | list[ColumnOrName]) -> WindowedFrame:
        """Windows for each value of some columns."""
        self._by = keys(self._frame, _flat(cols), f"{self._method}.by")
        return self

    def agg(self, *exprs: Column) -> Frame:
        """One row for each window: the keys, then the aggregates."""
        if not exprs:
            raise FlowError(f"{self._method}: agg needs at least one aggregate, F.count('*') say")
        columns = tuple(aggregated(self._frame, e, self._method) for e in exprs)
        names = [e.name for e in self._by] + [c.name for c in columns]
        for name in names:
            if names.count(name) > 1:
                raise FlowError(f"{self._method}: two columns are called {name!r}; rename one")
        return self._frame._add(self._kind, by=self._by, columns=columns, **self._parameters)


def count_window(frame: Frame, size: int, slide: int | None, order_by: Any) -> WindowedFrame:
    """Windows of so many rows."""
    step = size if slide is None else slide
    for name, value in (("size", size), ("slide", step)):
        if not _is_whole(value) or value < 1:
            raise FlowError(f"count_window: {name} is a number of rows, 1 at least, not {value!r}")
    _require_slide("count_window", size, step)
    orders = order(frame, order_by, "count_window")
    parameters = {"size": size, "slide": step, "order_by": orders}
    return WindowedFrame(frame, nodes.CountWindow, "count_window", parameters)


def value_window(
    frame: Frame, size: Any, slide: Any, on: ColumnOrName, order_by: Any
) -> WindowedFrame:
    """Windows of rows whose values lie close together."""
    expr = frame._resolved(ex.column_or_name(on, what="value_window"), "value_window")
    is_time = _is_time(frame, expr, "value_window")
    sizes = [
        _length(size, is_time, "value_window", "size"),
        _length(slide, is_time, "value_window", "slide"),
    ]
    _require_slide("value_window", *sizes)
    orders = order(frame, order_by, "value_window")
    parameters = {"size": sizes[0], "slide": sizes[1], "on": expr, "order_by": orders}
    return WindowedFrame(frame, nodes.ValueWindow, "value_window", parameters)


def b_sort(frame: Frame, slack: int, on: Any, by: Any, order_by: Any) -> Frame:
    """A bounded-pass sort."""
    if not _is_whole(slack) or slack < 0:
        raise FlowError(f"b_sort: slack is a number of rows, 0 at least, not {slack!r}")
    columns = keys(frame, _flat([on]), "b_sort")
    if not columns:
        raise FlowError("b_sort: on= names the columns to sort by")
    return frame._add(
        nodes.BSort,
        slack=slack,
        on=columns,
        by=keys(frame, _flat([by]), "b_sort"),
        order_by=order(frame, order_by, "b_sort"),
    )


def merge(frame: Frame, others: tuple[Frame, ...]) -> Frame:
    """The rows of several frames."""
    if not others:
        raise FlowError("merge takes at least one other frame")
    for other in others:
        frame._same_flow(other, "merge")
        if sorted(other.columns) != sorted(frame.columns):
            raise FlowError(
                f"merge: step {other.step!r} has the columns {', '.join(other.columns)}, "
                f"step {frame.step!r} has {', '.join(frame.columns)}; select the same ones"
            )
    return frame._add(nodes.Merge, *others)


def join_latest(left: Frame, right: Frame, on: Any, clock: str, how: str, order_by: Any) -> Frame:
    """Each row of the clock with the most recent row of the other."""
    if clock not in ("left", "right"):
        raise FlowError(f"join_latest: clock={clock!r} is neither 'left' nor 'right'")
    kind = {"inner": "inner", "left": "left_outer", "leftouter": "left_outer"}.get(
        how.casefold().replace("_", "")
    )
    if kind is None:
        raise UnsupportedError(f"join_latest: how={how!r}: use 'inner' or 'left_outer'")
    if kind == "left_outer" and clock == "right":
        raise FlowError("join_latest: an outer join keeps the clock's rows: it must be the left")
    parameters = _pair(left, right, on, order_by, "join_latest")
    return left._add(nodes.JoinLatest, right, clock=clock, how=kind, **parameters)


def join_last(left: Frame, right: Frame, on: Any, lasts: Any, order_by: Any) -> Frame:
    """Each row with those in the other side's window."""
    sides = [_last(value, name) for name, value in zip(("left", "right"), lasts, strict=True)]
    parameters = _pair(left, right, on, order_by, "join_last")
    return left._add(nodes.JoinLast, right, left=sides[0], right=sides[1], **parameters)


def join_value(
    left: Frame,
    right: Frame,
    left_on: ColumnOrName,
    right_on: ColumnOrName,
    size: Any,
    on: Any,
    order_by: Any,
) -> Frame:
    """Each left row with the right rows in a range of values above its own."""
    sides = [
        frame._resolved(ex.column_or_name(value, what="join_value"), "join_value")
        for frame, value in ((left, left_on), (right, right_on))
    ]
    times = [
        _is_time(frame, expr, "join_value")
        for frame, expr in zip((left, right), sides, strict=True)
    ]
    if times[0] != times[1]:
        raise FlowError(f"join_value: {sides[0]} and {sides[1]} are not both numbers or both times")
    parameters = _pair(left, right, on, order_by, "join_value")
    length = _length(size, times[0], "join_value", "size")
    return left._add(
        nodes.JoinValue, right, left_on=sides[0], right_on=sides[1], size=length, **parameters
    )


def order(frame: Frame, order_by: Any, method: str) -> tuple[ex.Expr, ...]:
    """What rows are sorted by; without anything given they must stand in an order already."""
    given = keys(frame, _flat([order_by]), method)
    if not given and (why := why_unordered(frame._node)) is not None:
        raise FlowError(
            f"{method} at {callsite()}: {why}; say by which columns they arrived, order_by=[…]"
        )
    return given


def keys(frame: Frame, values: list[Any], method: str) -> tuple[ex.Expr, ...]:
    """Columns of a frame, by Column or name, each with a name of its own."""
    found = []
    for value in values:
        expr = frame._resolved(ex.column_or_name(value, what=method), method)
        if expr.name is None:
            raise FlowError(f"{method}: give {expr} a name with alias(…)")
        found.append(expr)
    return tuple(found)


def aggregated(frame: Frame, value: Column, method: str) -> nodes.Aggregated:
    """One aggregate of a window: a function of an expression, under a name."""
    if not isinstance(value, Column):
        raise FlowError(f"{method}: agg takes Columns, not {type(value).__name__}")
    expr = frame._resolved(ex.column(value, what=method), method)
    term = unaliased(expr.term)
    name = expr.name or term.text()
    function = None
    if isinstance(term, Call):
        function = _FUNCTIONS.get(term.name)
        inner = term.args[0] if term.args else None
        if term.distinct:
            function = "count_distinct" if function == "count" and len(term.args) == 1 else None
        elif term.name in ("size", "cardinality") and isinstance(inner, Call):
            function = "size_of_set" if inner.name == "collect_set" else None
        elif len(term.args) > 1 and not _keeps_nulls(term):
            function = None
    if function is None:
        raise UnsupportedError(
            f"{method}: {expr} is not one of its aggregates: {', '.join(sorted(set(_FUNCTIONS)))}, "
            "count_distinct and size(collect_set(…)), each of one expression; "
            "what is computed from them goes into a select behind"
        )
    assert isinstance(term, Call)
    counts_rows = function == "count" and (not term.args or isinstance(term.args[0], Star))
    argument = None if counts_rows else ex.argument(expr, 2 if function == "size_of_set" else 1)
    return nodes.Aggregated(name, function, argument, expr)


def _keeps_nulls(term: Call) -> bool:
    """Whether a call is `first` or `last` of all values, null or not, as PySpark writes it."""
    named = _FUNCTIONS.get(term.name) in ("first", "last")
    return named and len(term.args) == 2 and term.args[1] == Literal(False, "boolean")


def _pair(left: Frame, right: Frame, on: Any, order_by: Any, method: str) -> dict[str, Any]:
    """The parameters that all ordered joins share, checked."""
    left._same_flow(right, method)
    for frame in (left, right):
        if not frame.isStreaming:
            raise UnsupportedError(
                f"{method}: step {frame.step!r} does not stream; use join for a static side"
            )
    names = tuple(_flat([on]))
    for name in names:
        if not isinstance(name, str):
            raise FlowError(f"{method}: on= takes names of columns that both sides have")
        for side, frame in (("left", left), ("right", right)):
            if name not in frame.columns:
                raise FlowError(
                    f"{method}: the {side} side, step {frame.step!r}, has no column {name!r}; "
                    f"it has {', '.join(frame.columns)}"
                )
        kinds = [frame.schema[name].dataType for frame in (left, right)]
        if kinds[0] != kinds[1]:
            raise FlowError(
                f"{method}: {name!r} is {kinds[0].simpleString()} on the left and "
                f"{kinds[1].simpleString()} on the right; cast one"
            )
    folded = {c.casefold() for c in left.columns} - {n.casefold() for n in names}
    if shared := [c for c in right.columns if c.casefold() in folded]:
        raise FlowError(f"{method}: both sides have a column {shared[0]!r}; rename one")
    orders = order_by if isinstance(order_by, dict) else {"left": order_by, "right": order_by}
    if unknown := set(orders) - {"left", "right"}:
        raise FlowError(f"{method}: order_by has {sorted(unknown)}, not just 'left' and 'right'")
    return {
        "on": names,
        "order_by": order(left, orders.get("left", ()), method),
        "right_order_by": order(right, orders.get("right", ()), method),
    }


def _last(value: Any, side: str) -> nodes.Last:
    if _is_whole(value):
        if value < 1:
            raise FlowError(f"join_last: {side}= is a number of rows, 1 at least, not {value}")
        return nodes.Last(rows=value)
    if isinstance(value, str):
        length = microseconds(value)
        if length < 0:
            raise FlowError(f"join_last: {side}={value!r} is less than no time")
        return nodes.Last(time=length)
    raise FlowError(
        f"join_last: {side}= is a number of rows or an interval such as '10 seconds', not {value!r}"
    )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_time(frame: Frame, expr: ex.Expr, method: str) -> bool:
    kind = frame._df.select(expr.column).schema.fields[0].dataType
    if isinstance(kind, TimestampType):
        return True
    if not isinstance(kind, NumericType):
        raise FlowError(
            f"{method}: {expr} is {kind.simpleString()}, neither a number nor a timestamp"
        )
    return False


def _length(value: Any, is_time: bool, method: str, name: str) -> float:
    """The size of a window: microseconds for times, a number otherwise."""
    if is_time:
        if not isinstance(value, str):
            raise FlowError(
                f"{method}: {name} of times is an interval such as '2 minutes', not {value!r}"
            )
        length: float = microseconds(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        length = value
    else:
        raise FlowError(f"{method}: {name} of numbers is a number, not {value!r}")
    if not length > 0:
        raise FlowError(f"{method}: {name} must be greater than 0, not {value!r}")
    return length


def _require_slide(method: str, size: float, slide: float) -> None:
    if slide > size:
        raise FlowError(
            f"{method}: slide {slide:g} is greater than size {size:g}: rows between two windows "
            "would be in none; use filter to leave rows out"
        )


def _flat(values: Iterable[Any]) -> list[Any]:
    flat: list[Any] = []
    for value in values:
        if value is None:
            continue
        flat.extend(value) if isinstance(value, list | tuple) else flat.append(value)
    return flat
