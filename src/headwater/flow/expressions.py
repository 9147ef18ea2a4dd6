"""Reading the user's Columns and SQL texts into terms, by Spark's own parser.

The one module that looks into Spark's JVM objects for what an expression says. A Column
becomes a Catalyst expression (unresolved, as the user wrote it), and that becomes a `Term`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pyspark.errors import ParseException
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column as ClassicColumn

from headwater.errors import FlowError
from headwater.flow.jvm import active_session, sequence, spark_jvm, strings
from headwater.flow.terms import As, Call, Cast, Literal, Opaque, Ref, Star, Term

REFERENCE = "__hw_ref"
"""First name part of `frame["c"]`: the step's name and the column's follow."""

_SYMBOLS = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "Add": "+",
    "Subtract": "-",
    "Multiply": "*",
    "Divide": "/",
    "Remainder": "%",
    "And": "and",
    "Or": "or",
    "Not": "not",
    "IsNull": "isnull",
    "IsNotNull": "isnotnull",
    "In": "in",
    "Like": "like",
    "CaseWhen": "case",
    "UnaryMinus": "negative",
    "UnresolvedExtractValue": "get",
}

_NAMES = {"==": "=", "!": "not", "<>": "!=", "isNull": "isnull", "isNotNull": "isnotnull"}


@dataclass(frozen=True, slots=True)
class Expr:
    """One expression of a step: what it says, and the Column to hand to Spark."""

    term: Term
    column: Column = field(compare=False, repr=False, hash=False)

    @property
    def has_references(self) -> bool:
        """Whether it holds a `frame["c"]` that is yet to be looked up."""
        return any(isinstance(t, Ref) and t.parts[0] == REFERENCE for t in self.term.walk())

    @property
    def name(self) -> str | None:
        """The name of the column it makes, where the expression itself says so."""
        match self.term:
            case As(names=(name,)):
                return name
            case Ref(parts=parts):
                return parts[-1]
        return None

    def __str__(self) -> str:
        return self.term.text()


def sql(text: str, *, what: str) -> Expr:
    """An expression from SQL text."""
    if not isinstance(text, str):
        raise FlowError(f"{what} takes a Column or a SQL string, not {type(text).__name__}")
    return column(F.expr(text), what=what, text=text)


def named(name: str) -> Expr:
    """A column by its name, as PySpark's methods take strings: `*`, `a`, `struct.field`."""
    return column(F.col(name), what="a column name", text=name)


def column(col: Column, *, what: str, text: str | None = None) -> Expr:
    """An expression from a Column."""
    try:
        return Expr(_read(catalyst(col)), col)
    except ParseException as error:
        message = " ".join(str(error).split("\n== SQL")[0].split())
        raise FlowError(f"{what}: Spark can't parse {text or str(col)!r}: {message}") from error


def either(value: Column | str, *, what: str) -> Expr:
    """An expression from a Column or SQL text."""
    return column(value, what=what) if isinstance(value, Column) else sql(value, what=what)


def column_or_name(value: Column | str, *, what: str) -> Expr:
    """An expression from a Column or a column's name."""
    if isinstance(value, Column):
        return column(value, what=what)
    if isinstance(value, str):
        return named(value)
    raise FlowError(f"{what} takes Columns or column names, not {type(value).__name__}")


def catalyst(col: Column) -> Any:
    """The Catalyst expression (unresolved) behind a Column."""
    return active_session()._jsparkSession.expression(java_column(col))


def from_catalyst(expression: Any) -> Column:
    """A Column that holds a Catalyst expression."""
    jvm = spark_jvm()
    origin = expression.origin()
    node = jvm.org.apache.spark.sql.classic.ExpressionColumnNode(expression, origin)
    return column_of(jvm.org.apache.spark.sql.Column(node))


def column_of(java_column: Any) -> Column:
    """The Python face of a JVM Column."""
    return ClassicColumn(java_column)


def java_column(col: Column) -> Any:
    """The JVM Column behind a Python one."""
    return col._jc


def unaliased(expr: Expr) -> Column:
    """The expression without the name that it gives its column."""
    return from_catalyst(_unaliased(expr))


def generator_argument(expr: Expr) -> Column:
    """What a generator such as explode is applied to."""
    return from_catalyst(_unaliased(expr).children().apply(0))


def argument(expr: Expr, depth: int = 1) -> Expr:
    """The first argument of a function, or of the one inside it."""
    expression = _unaliased(expr)
    if expression.getClass().getSimpleName() == "AggregateExpression":
        depth += 1
    for _ in range(depth):
        expression = expression.children().apply(0)
    return column(from_catalyst(expression), what="an aggregate")


def _unaliased(expr: Expr) -> Any:
    expression = catalyst(expr.column)
    while expression.getClass().getSimpleName() in ("Alias", "MultiAlias"):
        expression = expression.children().apply(0)
    return expression


def _read(expression: Any) -> Term:
    kind = expression.getClass().getSimpleName()
    match kind:
        case "UnresolvedAttribute":
            return Ref(strings(expression.nameParts()))
        case "Literal":
            return _literal(expression)
        case "UnresolvedStar":
            target = expression.target()
            return Star(strings(target.get()) if target.isDefined() else ())
    children = sequence(expression.children())
    args = tuple(
        _read(c) for c in children if not c.getClass().getSimpleName().startswith("NamePlaceholder")
    )
    match kind:
        case "Alias":
            return As(args[0], (str(expression.name()),))
        case "MultiAlias":
            return As(args[0], strings(expression.names()))
        case "Cast":
            return Cast(args[0], str(expression.dataType().simpleString()))
        case "UnresolvedFunction":
            name = ".".join(strings(expression.nameParts()))
            if len(children) != expression.arguments().size():
                return Opaque(f"{name} … FILTER", args)
            return Call(_NAMES.get(name, name.lower()), args, bool(expression.isDistinct()))
        case "AggregateExpression":  # how Spark's parser reads first(x) and last(x)
            return args[0]
        case "First" | "Last" if not expression.ignoreNulls():
            return Call(kind.lower(), args[:1])
        case "CreateNamedStruct":
            return Call("struct", args)
        case "PythonUDF":
            return Opaque(f"python:{expression.name()}", args)
        case _ if kind in _SYMBOLS:
            return Call(_SYMBOLS[kind], args)
    return Opaque(str(expression.prettyName()), args)


def _literal(expression: Any) -> Literal:
    value, spark_type = expression.value(), str(expression.dataType().simpleString())
    if value is None or isinstance(value, bool | int | float):
        return Literal(value, spark_type)
    if spark_type.startswith("decimal"):
        return Literal(Decimal(str(value.toString())), spark_type)
    if spark_type == "interval":
        days, micros = value.days() if callable(value.days) else value.days, value.microseconds()
        return Literal(days * 86_400_000_000 + micros, "interval")
    if isinstance(value, bytes):
        return Literal(value, spark_type)
    return Literal(str(value.toString()), spark_type)
