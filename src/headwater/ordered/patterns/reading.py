"""The SQL texts of a pattern, read by sqlglot: which columns of which variable they name.

Parts of them go to Spark itself. So functions and numbers are taken as they are written, not as
sqlglot would translate them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parsers.spark import SparkParser

from headwater.errors import FlowError

if TYPE_CHECKING:
    from collections.abc import Collection

FUNCTIONS = {
    "first": "first",
    "last": "last",
    "count": "count",
    "sum": "sum",
    "min": "min",
    "max": "max",
    "avg": "avg",
    "mean": "avg",
    "collect_list": "collect_list",
    "array_agg": "collect_list",
    "prev": "prev",
    "next": "next",
    "match_number": "match_number",
    "classifier": "classifier",
    "classifiers": "classifiers",
}
"""Functions of matched rows, by the names that they may have."""

_OWN_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "POSITION", "OVERLAY")
"""Functions whose arguments have words between them."""


class _Parser(SparkParser):
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: parser for name, parser in SparkParser.FUNCTION_PARSERS.items() if name in _OWN_SYNTAX
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]
    }
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}


class Natives:
    """Expressions of one row's columns, which Spark evaluates: each once, under a name."""

    def __init__(self) -> None:
        self.columns: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def name(self, text: str) -> str:
        """The column that holds an expression's value."""
        if text not in self._names:
            self._names[text] = f"__hw_c{len(self._names)}"
            self.columns[self._names[text]] = text
        return self._names[text]


def read(text: str, what: str) -> exp.Expr:
    """The tree of one SQL expression."""
    if not isinstance(text, str):
        raise FlowError(f"{what} takes SQL text, not {type(text).__name__}")
    try:
        trees = _Parser(dialect="spark").parse_into(exp.Condition, _words(text), text)
    except SqlglotError as error:
        raise FlowError(f"{what}: can't parse {text!r}: {_said(error)}") from error
    if len(trees) != 1 or trees[0] is None or trees[0].find(exp.Query):
        raise FlowError(f"{what}: {text!r} is not one expression")
    return trees[0]


def _words(text: str) -> list[Any]:
    words: list[Any] = []
    for word in Spark().tokenize(text):
        if words and word.start == words[-1].start:
            continue  # 1L comes as 1, :: and BIGINT, all in one place
        if word.token_type.name == "NUMBER":
            word.text = text[word.start : word.end + 1]
        words.append(word)
    return words


def _said(error: SqlglotError) -> str:
    """What sqlglot says, in one line."""
    if isinstance(error, ParseError) and error.errors:
        first = error.errors[0]
        return f"{first['description']}, column {first['col']}"
    return " ".join(str(error).split())


def written(tree: exp.Expr) -> str:
    """A tree as SQL, its functions called as they were."""
    return tree.sql("spark", comments=False, normalize_functions=False)


def function(node: exp.Expr) -> str | None:
    """The function of matched rows that a node calls, if it does."""
    return FUNCTIONS.get(node.name.lower()) if isinstance(node, exp.Anonymous) else None


def qualifier(node: exp.Expr, variables: Collection[str]) -> str | None:
    """The variable that a column is named with: A of `A.price`."""
    if isinstance(node, exp.Column) and len(node.parts) > 1:
        name = node.parts[0].name
        return name if name in variables else None
    return None


def qualifiers(tree: exp.Expr, variables: Collection[str]) -> set[str | None]:
    """The variables whose columns a tree names; None stands for columns without a variable."""
    return {qualifier(column, variables) for column in tree.find_all(exp.Column)}


def is_native(tree: exp.Expr, own: str, variables: Collection[str]) -> bool:
    """Whether a tree is about the current row alone, which is to be matched to `own`."""
    others = [v for v in variables if v != own]
    return not any(
        function(node) or qualifier(node, others) or isinstance(node, exp.Window)
        for node in tree.walk()
    )


def without(tree: exp.Expr, variable: str | None) -> str:
    """The text of an expression of one row, its columns no longer named with the variable."""

    def plain(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or not qualifier(node, own):
            return node
        names = [part.copy() for part in node.parts[1:]]
        places = ("this", "table", "db", "catalog")
        return exp.Column(**dict(zip(places, reversed(names), strict=False)))

    own = () if variable is None else (variable,)
    return written(tree.transform(plain))


def verbatim(text: str, tree: exp.Expr, variable: str) -> str:
    """As `without`, as the user wrote it where that is possible."""
    columns = [c for c in tree.find_all(exp.Column) if qualifier(c, (variable,))]
    cuts = [(c.parts[0].meta.get("start"), c.parts[1].meta.get("start")) for c in columns]
    if "--" in text or "/*" in text or any(None in cut for cut in cuts):
        return without(tree, variable)
    for start, end in sorted(cuts, reverse=True):
        text = text[:start] + text[end:]
    return text.strip()


def single(
    node: exp.Expr, variables: Collection[str], what: str
) -> tuple[str | None, exp.Expr | None]:
    """The variable and the argument of a function of matched rows; `count(*)` has no argument."""
    given = node.expressions
    shown = written(node)
    if len(given) != 1 or isinstance(given[0], exp.Distinct):
        raise FlowError(f"{what}: {shown} must have one argument, without DISTINCT")
    argument = given[0]
    if function(node) == "count":
        if isinstance(argument, exp.Star):
            return None, None
        if isinstance(argument, exp.Column) and isinstance(argument.this, exp.Star):
            named = qualifier(argument, variables)
            if named is None:
                raise FlowError(f"{what}: {shown}: the pattern has no such variable")
            return named, None
    if any(function(part) or isinstance(part, exp.Window) for part in argument.walk()):
        raise FlowError(f"{what}: {shown} has a function of matched rows within another")
    mentioned = qualifiers(argument, variables)
    if len(mentioned) > 1:
        names = ", ".join(sorted(name or "none" for name in mentioned))
        raise FlowError(f"{what}: {shown} mixes columns of several variables ({names})")
    return (mentioned.pop() if mentioned else None), argument
