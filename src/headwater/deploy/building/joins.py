"""Joins of flow files as frames join: clocked, of the last events, within a time, with a table."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headwater.columns import quoted
from headwater.errors import FlowError
from headwater.flow.frame import Frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.compose.kinds import Join
    from headwater.compose.structures import Port


def joined(node: Join, left: Any, right: Any, time_of: Callable[[str], str]) -> Frame:
    """The pairs of a join; a side that is no Frame is a table of Spark's."""
    first, second = node.inputs
    if not isinstance(left, Frame):
        raise FlowError(f"port {first.name!r} is static; the first port of a join is a stream")
    right = _apart(left, right, node.on, second)
    if node.policy is None:
        return _with_table(node, left, right)
    if not isinstance(right, Frame):
        raise FlowError(f"port {second.name!r} is static; leave policy out")
    on, order = list(node.on), _orders(node.order_by)
    if node.policy == "latest":
        clock = "left" if node.clock_port == first.name else "right"
        return left.join_latest(right, on, clock, node.how, order_by=order)
    if node.policy == "last":
        assert node.left is not None
        assert node.right is not None
        return left.join_last(right, on, left=node.left, right=node.right, order_by=order)
    if node.policy == "value":
        assert node.size is not None
        sides = str(node.left_on), str(node.right_on)
        return left.join_value(right, *sides, node.size, on, order_by=order)
    return _within(node, left, right, time_of)


def _with_table(node: Join, left: Frame, right: Any) -> Frame:
    if isinstance(right, Frame):
        raise FlowError("both its inputs stream: it needs a policy")
    if node.on and node.where is not None:
        raise FlowError("a join with a static table takes on or where, not both")
    condition: Any = list(node.on) if node.where is None else F.expr(node.where)
    return left.join(right, condition, _how(node))


def _within(node: Join, left: Frame, right: Frame, time_of: Callable[[str], str]) -> Frame:
    """Pairs of events whose times are close."""
    first, second = node.inputs
    renamed = {column: f"hw_right_{column}" for column in node.on}
    other = right.withColumnsRenamed(renamed) if renamed else right
    conditions = [quoted(c) == quoted(renamed[c]) for c in node.on]
    added = list(renamed.values())
    if not node.on:
        # Spark joins streams on equal values only: these are, and it can't find that out.
        left, other = (_with_equal(f, n) for f, n in ((left, "hw_left"), (other, "hw_right")))
        conditions.append(F.col("hw_left") == F.col("hw_right"))
        added = ["hw_left", "hw_right"]
    if node.within is not None:
        one, two = time_of(first.target), time_of(second.target)
        two = two if two in other.columns else f"{second.name}_{two}"
        _require_time(left, one, first)
        _require_time(other, two, second)
        within = F.expr(f"interval {node.within}")
        conditions += [
            quoted(two) >= quoted(one) - within,
            quoted(two) <= quoted(one) + within,
        ]
    if node.where is not None:
        conditions.append(F.expr(node.where))
    return left.join(other, reduce(Column.__and__, conditions), _how(node)).drop(*added)


def _require_time(frame: Frame, time: str, port: Port) -> None:
    """Refuse windows as times: Spark admits one event time, and can't join within windows."""
    if isinstance(frame.schema[time].dataType, StructType):
        raise FlowError(
            f"port {port.name!r} has windows for times, and within needs moments; give it a map "
            f"with columns: {{{time}: window_time({time})}} first"
        )


def _how(node: Join) -> str:
    return "left" if node.how == "left_outer" else "inner"


def _apart(left: Frame, right: Any, on: tuple[str, ...], port: Port) -> Any:
    """The second side of a join with its own names for what both sides have."""
    there = {column.casefold() for column in left.columns}
    names = {
        column: f"{port.name}_{column}"
        for column in right.columns
        if column.casefold() in there and column not in on
    }
    return right.withColumnsRenamed(names) if names else right


def _with_equal(frame: Frame, name: str) -> Frame:
    """The frame with a column that is 0 in every row."""
    first = quoted(frame.columns[0])
    return frame.withColumn(name, F.pmod(F.xxhash64(first), F.lit(1).cast("bigint")))


def _orders(given: Any) -> Any:
    if hasattr(given, "items"):
        return {side: list(columns) for side, columns in given.items()}
    return list(given)
