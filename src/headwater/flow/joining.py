"""Joins: which columns mean which side, and whether the state of two streams is bounded."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import Column, DataFrame

from headwater.errors import FlowError, UnsupportedError
from headwater.flow import expressions as ex
from headwater.flow import nodes
from headwater.flow.callsite import callsite
from headwater.flow.jvm import scala_object, spark_jvm
from headwater.flow.references import aliased, join_aliases, resolve

if TYPE_CHECKING:
    from headwater.flow.frame import Frame

_HOW: dict[str, Literal["inner", "left_outer"]] = {
    "inner": "inner",
    "left": "left_outer",
    "leftouter": "left_outer",
}


_DECADE = 10 * 366 * 86_400_000
"""In milliseconds, as Spark's state watermarks are."""


def join_node(left: Frame, right: Frame, on: Any, how: str | None) -> nodes.Join:
    """The node of `left.join(right, on, how)`, checked."""
    kind = _HOW.get((how or "inner").casefold().replace("_", ""))
    if kind is None:
        raise UnsupportedError(f"join: how={how!r} is not supported; use 'inner' or 'left_outer'")
    if on is None:
        raise UnsupportedError("join needs on=: a condition, or names that both sides have")
    if right.isStreaming and not left.isStreaming:
        raise UnsupportedError("join: put the stream on the left and the static side on the right")
    step = left.flow._next_step("join")
    names = _names(on, left, right)
    aliases = join_aliases(step, names or (), left._attributes, right._attributes)
    condition: ex.Expr | tuple[str, ...] = names or ()
    if names is None:
        conjunction = reduce(Column.__and__, on) if isinstance(on, list | tuple) else on
        sides = [
            (left.step, aliased(left._attributes, aliases[0])),
            (right.step, aliased(right._attributes, aliases[1])),
        ]
        condition = resolve(ex.either(conjunction, what="join"), "join", sides)
    node = nodes.Join(
        step=step,
        site=callsite(),
        inputs=(left._node, right._node),
        on=condition,
        how=kind,
        left_alias=aliases[0],
        right_alias=aliases[1],
    )
    if left.isStreaming and right.isStreaming:
        waits, bounded = _waits(node, left.flow._checked(node))
        span = sum(map(abs, waits)) * 1000 + 1000 * any(waits)
        return replace(node, range=span if bounded else None, waits=waits)
    return node


def _names(on: Any, left: Frame, right: Frame) -> tuple[str, ...] | None:
    """The names of `on`, or None when it is a condition."""
    names = [on] if isinstance(on, str) else on
    if not isinstance(names, list | tuple) or not all(isinstance(n, str) for n in names):
        return None
    for name in names:
        for side, frame in (("left", left), ("right", right)):
            if name not in frame.columns:
                raise FlowError(
                    f"join: the {side} side, step {frame.step!r}, has no column {name!r}; "
                    "for a condition in SQL use F.expr(…)"
                )
    return tuple(names)


def _waits(node: nodes.Join, df: DataFrame) -> tuple[tuple[int, int], bool]:
    """How far, in ms, each side's waiting rows may lie behind the watermark, as Spark has it.

    Also whether that bounds the times of a pair. Refused when nothing bounds the state.
    """
    # Spark won't hand out the optimised plan of a stream that is not started.
    optimizer = df.sparkSession._jsparkSession.sessionState().optimizer()
    plan = optimizer.execute(df._jdf.queryExecution().analyzed())
    while plan.getClass().getSimpleName() != "Join":
        plan = plan.children().apply(0)
    jvm = spark_jvm()
    helper = scala_object(jvm.org.apache.spark.sql.catalyst.analysis, "StreamingJoinHelper")
    if helper.isWatermarkInJoinKeys(plan):
        return (0, 0), any(map(_equates_times, _conjuncts(plan.condition().get())))
    left, right = plan.left().outputSet(), plan.right().outputSet()
    # Any watermark will do; one that only fits a Java long is passed as one.
    at = 1 << 40
    sides = [(left, right), (right, left)]
    bounds = [
        helper.getStateValueWatermark(a, b, plan.condition(), jvm.scala.Some(at)) for a, b in sides
    ]
    if not all(bound.isDefined() for bound in bounds):
        raise FlowError(
            f"join at {node.site}: two streams need watermarks and a bound on the times of a pair "
            "from both sides, such as right.ts BETWEEN left.ts - INTERVAL 1 MINUTE AND left.ts, or "
            "a window as key; without one their state grows forever"
        )
    waits = at - int(bounds[0].get()), at - int(bounds[1].get())
    if max(map(abs, waits)) > _DECADE:
        # Spark takes any comparison for one of times; this one is not with the other side's.
        raise FlowError(
            f"join at {node.site}: a comparison on one side alone, such as left.v > 2, makes Spark "
            "keep that side's state forever; put it into a filter before the join"
        )
    return waits, True


def _conjuncts(condition: Any) -> list[Any]:
    if condition.getClass().getSimpleName() != "And":
        return [condition]
    return [*_conjuncts(condition.left()), *_conjuncts(condition.right())]


def _equates_times(condition: Any) -> bool:
    """Whether a condition says that the event times of both sides are equal."""
    if condition.getClass().getSimpleName() not in ("EqualTo", "EqualNullSafe"):
        return False
    sides = (condition.left(), condition.right())
    return all(
        side.getClass().getSimpleName() == "AttributeReference"
        and side.metadata().contains("spark.watermarkDelayMs")
        for side in sides
    )
