"""Replacing `frame["c"]` inside the user's Columns, which live in the JVM as immutable trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.flow.expressions import REFERENCE, Expr, column, column_of, java_column
from headwater.flow.jvm import scala_seq, sequence, spark_jvm, strings

Resolve = Callable[[str, str], tuple[str, ...]]


def replace_references(expr: Expr, resolve: Resolve) -> Expr:
    """The expression with each `frame["c"]` replaced by the name parts that `resolve` gives."""
    if not expr.has_references:
        return expr
    node = _replace(java_column(expr.column).node(), resolve)
    jvm = spark_jvm()
    return column(column_of(jvm.org.apache.spark.sql.Column(node)), what="a column reference")


def _replace(node: Any, resolve: Resolve) -> Any:
    kind = node.getClass().getSimpleName()
    if kind == "UnresolvedAttribute":
        parts = strings(node.nameParts())
        if parts[0] != REFERENCE:
            return node
        return _copy(node, {0: scala_seq(list(resolve(parts[1], parts[2])))})
    if kind == "ExpressionColumnNode":
        return _copy(node, {0: _replace_in_expression(node.expression(), resolve)})
    changed: dict[int, Any] = {}
    for i in range(node.productArity()):
        element = node.productElement(i)
        new = _replace_element(element, resolve)
        if new is not element:
            changed[i] = new
    return _copy(node, changed) if changed else node


def _replace_element(element: Any, resolve: Resolve) -> Any:
    jvm = spark_jvm()
    if not hasattr(element, "getClass"):
        return element
    name = str(element.getClass().getName())
    if name.startswith("org.apache.spark.sql.internal.") or name.endswith("ExpressionColumnNode"):
        return _replace(element, resolve) if hasattr(element, "productArity") else element
    if name.startswith("scala.Some"):
        return jvm.scala.Some(_replace_element(element.get(), resolve))
    if name.startswith("scala.Tuple2"):
        first = _replace_element(element._1(), resolve)
        return jvm.scala.Tuple2(first, _replace_element(element._2(), resolve))
    if name.startswith("scala.collection"):
        return scala_seq([_replace_element(e, resolve) for e in sequence(element)])
    return element


def _replace_in_expression(expression: Any, resolve: Resolve) -> Any:
    """A Python function's call: its arguments are Column nodes wrapped as expressions."""
    spark_jvm()
    if expression.getClass().getSimpleName() == "ColumnNodeExpression":
        return _copy(expression, {0: _replace(expression.node(), resolve)})
    children = [_replace_in_expression(c, resolve) for c in sequence(expression.children())]
    return expression.withNewChildren(scala_seq(children)) if children else expression


def _copy(node: Any, changed: dict[int, Any]) -> Any:
    """A Scala case class again, with some of its fields changed."""
    jvm = spark_jvm()
    arity = node.productArity()
    values = jvm.java.util.ArrayList()
    for i in range(arity):
        values.add(changed.get(i, node.productElement(i)))
    return node.getClass().getConstructors()[0].newInstance(values.toArray())
