"""Ordered steps by hand, for tests without Spark."""

from __future__ import annotations

from typing import Any

from headwater.flow import nodes
from headwater.flow.terms import Term
from tests.testing.tables import SECOND, call, col, expr, named, source


def made(name: str, function: str, argument: Term | None = None) -> nodes.Aggregated:
    """An aggregate over the rows of a window."""
    written = call(function) if argument is None else call(function, argument)
    return nodes.Aggregated(
        name, function, None if argument is None else expr(argument), expr(written)
    )


IDS = made("ids", "collect_list", col("id"))


def _exprs(names: str) -> tuple[Any, ...]:
    return tuple(expr(col(name)) for name in names.split())


def count_window(
    above: nodes.Node,
    size: int,
    slide: int | None = None,
    by: str = "",
    order_by: str = "",
    columns: tuple[nodes.Aggregated, ...] = (IDS,),
    step: str = "count_window",
) -> nodes.CountWindow:
    """Windows of so many rows."""
    return nodes.CountWindow(
        step=step,
        inputs=(above,),
        size=size,
        slide=slide or size,
        by=_exprs(by),
        order_by=_exprs(order_by),
        columns=columns,
    )


def listed(above: nodes.Node, name: str = "id", size: int = 2, order_by: str = "") -> nodes.Node:
    """What arrives at a step, so many at a time: shows the order."""
    columns = (made("seen", "collect_list", col(name)),)
    return count_window(above, size, order_by=order_by, columns=columns, step="listed")


def value_window(
    above: nodes.Node,
    size: float,
    slide: float,
    on: str = "v",
    by: str = "",
    columns: tuple[nodes.Aggregated, ...] = (IDS,),
) -> nodes.ValueWindow:
    """Windows of values near each other; for times in seconds."""
    unit = SECOND if on == "ts" else 1
    return nodes.ValueWindow(
        step="value_window",
        inputs=(above,),
        size=size * unit,
        slide=slide * unit,
        on=expr(col(on)),
        by=_exprs(by),
        columns=columns,
    )


def b_sort(
    above: nodes.Node, slack: int, on: str = "v", by: str = "", order_by: str = ""
) -> nodes.BSort:
    """A bounded-pass sort."""
    return nodes.BSort(
        step="b_sort",
        inputs=(above,),
        slack=slack,
        on=_exprs(on),
        by=_exprs(by),
        order_by=_exprs(order_by),
    )


def merge(*above: nodes.Node) -> nodes.Merge:
    """Several inputs in one stream."""
    return nodes.Merge(step="merge", inputs=above)


def shorter(above: nodes.Node, prefix: str) -> nodes.Node:
    """A right side: the key `k`, and other names for the rest."""
    columns = [expr(col("k"))]
    columns += [expr(named(col(n), f"{prefix}{n}")) for n in ("id", "v", "ts")]
    return nodes.Project(step=f"{above.step}-renamed", inputs=(above,), columns=tuple(columns))


def _both() -> tuple[nodes.Node, nodes.Node]:
    left = nodes.Project(step="left", inputs=(source("a"),), columns=_exprs("k id v ts"))
    return left, shorter(source("b"), "b_")


def _told(joined: nodes.Node) -> nodes.Node:
    return nodes.Project(step="told", inputs=(joined,), columns=_exprs("k id b_id"))


def join_latest(**settings: Any) -> nodes.Node:
    """Rows of `a` and `b` with the latest of the other."""
    on = settings.pop("on", ("k",))
    return _told(nodes.JoinLatest(step="join", inputs=_both(), on=on, **settings))


def join_last(
    left: nodes.Last, right: nodes.Last, on: tuple[str, ...] = ("k",), **settings: Any
) -> nodes.Node:
    """Rows of `a` and `b` with the last of the other."""
    joined = nodes.JoinLast(step="join", inputs=_both(), on=on, left=left, right=right, **settings)
    return _told(joined)


def join_value(
    size: float, left_on: str = "v", right_on: str = "b_v", on: tuple[str, ...] = ("k",)
) -> nodes.Node:
    """Rows of `a` and `b` with values of the other above; for times in seconds."""
    joined = nodes.JoinValue(
        step="join",
        inputs=_both(),
        on=on,
        left_on=expr(col(left_on)),
        right_on=expr(col(right_on)),
        size=size * SECOND if left_on == "ts" else size,
    )
    return _told(joined)
