"""`frame["c"]`, `frame.c` and `left.c == right.c`: columns that remember their frame.

Such a reference is an unresolved name that holds the step and the column. Where it is used,
it is looked up among the columns of the input frames, each of which knows under which steps
it has been visible on its way; the reference is then replaced by ordinary name parts. So one
flow's expressions serve every lowering.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from headwater.errors import FlowError
from headwater.flow import nodes
from headwater.flow.expressions import REFERENCE, Expr
from headwater.flow.rewriting import replace_references

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column of a frame: its name, its SQL qualifier, and where it has been visible."""

    name: str
    qualifier: tuple[str, ...]
    spark_id: int
    visible: frozenset[tuple[str, str]]


def reference(step: str, name: str) -> Column:
    """The column `name` of a step's frame."""
    return F.col(".".join(f"`{part.replace('`', '``')}`" for part in (REFERENCE, step, name)))


def attributes(
    node: nodes.Node, df: DataFrame, inputs: list[tuple[Attribute, ...]]
) -> tuple[Attribute, ...]:
    """The columns of a step's frame, given those of its inputs."""
    output = df._jdf.queryExecution().analyzed().output()
    found = [output.apply(i) for i in range(output.size())]
    if isinstance(node, nodes.Join):
        seen = _seen_by_join(node, inputs[0], inputs[1])
    else:
        above = {a.spark_id: a.visible for columns in inputs for a in columns}
        seen = [above.get(a.exprId().id(), frozenset()) for a in found]
    return tuple(
        Attribute(
            str(a.name()),
            tuple(a.qualifier().apply(i) for i in range(a.qualifier().size())),
            int(a.exprId().id()),
            visible | {(node.step, str(a.name()))},
        )
        for a, visible in zip(found, seen, strict=True)
    )


def _seen_by_join(
    node: nodes.Join, left: tuple[Attribute, ...], right: tuple[Attribute, ...]
) -> list[frozenset[tuple[str, str]]]:
    # By position: a self-join's two sides have the same Spark ids.
    keys = () if isinstance(node.on, Expr) else node.on
    folded = [k.casefold() for k in keys]

    def rest(side: tuple[Attribute, ...]) -> list[frozenset[tuple[str, str]]]:
        return [a.visible for a in side if a.name.casefold() not in folded]

    merged = []
    for key in folded:
        sides = (left, right) if node.how == "inner" else (left,)
        merged.append(
            frozenset().union(
                *(a.visible for side in sides for a in side if a.name.casefold() == key)
            )
        )
    return [*merged, *rest(left), *rest(right)]


def resolve(expr: Expr, method: str, frames: list[tuple[str, tuple[Attribute, ...]]]) -> Expr:
    """The expression with its references replaced by names that the input frames understand."""
    counts = Counter(a.name.casefold() for _, columns in frames for a in columns)

    def parts(step: str, name: str) -> tuple[str, ...]:
        found = [
            (own_step, a)
            for own_step, columns in frames
            for a in columns
            if (step, name) in a.visible
        ]
        exact = [pair for pair in found if pair[0] == step]
        found = exact or found
        if not found:
            raise FlowError(
                f"{method}: column {name!r} of step {step!r} is no longer there (dropped or made "
                f"anew on the way); use F.col({name!r}) for the column of that name now"
            )
        if len(found) > 1:
            raise FlowError(
                f"{method}: column {name!r} of step {step!r} is there more than once; "
                f"use alias() on the frames and F.col('alias.{name}')"
            )
        attribute = found[0][1]
        if counts[attribute.name.casefold()] == 1:
            return (attribute.name,)
        return (*attribute.qualifier, attribute.name)

    return replace_references(expr, parts)


def join_aliases(
    step: str,
    on: tuple[str, ...],
    left: tuple[Attribute, ...],
    right: tuple[Attribute, ...],
) -> tuple[str | None, str | None]:
    """Aliases for the sides of a join that hold a name which the other side has too."""
    keys = {k.casefold() for k in on}
    shared = {a.name.casefold() for a in left} & {a.name.casefold() for a in right}
    shared -= keys
    left_q = {a.qualifier for a in left if a.name.casefold() in shared}
    right_q = {a.qualifier for a in right if a.name.casefold() in shared}
    clash = bool(left_q & right_q)

    def alias(side: str, qualifiers: set[tuple[str, ...]]) -> str | None:
        return f"__hw_{side}_{step}" if qualifiers and (() in qualifiers or clash) else None

    return alias("left", left_q), alias("right", right_q)


def aliased(columns: tuple[Attribute, ...], alias: str | None) -> tuple[Attribute, ...]:
    """The columns as they are seen under an alias."""
    if alias is None:
        return columns
    return tuple(Attribute(a.name, (alias,), a.spark_id, a.visible) for a in columns)
