"""Spark's SQL read into a tree by `sqlglot`, and parts of the tree written again, word for word.

`sqlglot` is made to translate between dialects: it knows functions by their meaning and writes them
in its own way. Here the text goes back to Spark itself, so each function keeps the name and the
arguments that the user gave it, and each constant is copied as it stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

if TYPE_CHECKING:
    from collections.abc import Iterator

_TYPES = frozenset("DATE TIMESTAMP TIMESTAMP_NTZ TIMESTAMP_LTZ TIME".split())
_UNITS = frozenset(
    "YEAR QUARTER MONTH WEEK DAY HOUR MINUTE SECOND MILLISECOND MICROSECOND NANOSECOND".split()
)
_CONSTANTS = {
    TokenType.STRING: TokenType.STRING,
    TokenType.RAW_STRING: TokenType.STRING,
    TokenType.NUMBER: TokenType.NUMBER,
    TokenType.HEX_STRING: TokenType.NUMBER,
}
_STRINGS = (TokenType.STRING, TokenType.RAW_STRING)
_OWN_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "POSITION", "OVERLAY")
"""Functions whose arguments are not just separated by commas."""

_WITH_UNIT = ("timestampadd", "timestampdiff", "dateadd", "date_add", "datediff", "date_diff")


class _Parser(SparkParser):
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: SparkParser.FUNCTION_PARSERS[name] for name in _OWN_SYNTAX
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]
    }
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}  # array(1, 2)[0] is a call, then an element
    ADD_JOIN_ON_TRUE = False


class _Generator(SparkGenerator):
    # Operators stay operators, so that Spark's own precedence decides what they apply to.
    TRANSFORMS: ClassVar[dict[type[exp.Expr], Any]] = {
        **SparkGenerator.TRANSFORMS,
        exp.BitwiseLeftShift: lambda self, e: self.binary(e, "<<"),
        exp.BitwiseRightShift: lambda self, e: self.binary(e, ">>"),
        exp.NullSafeEQ: lambda self, e: self.binary(e, "<=>"),
    }

    def literal_sql(self, expression: exp.Literal) -> str:
        return str(expression.this)

    def not_sql(self, expression: exp.Not) -> str:
        test = expression.this
        if isinstance(test, exp.Is):
            return f"{self.sql(test, 'this')} IS NOT {self.sql(test, 'expression')}"
        return super().not_sql(expression)


@dataclass(frozen=True, slots=True)
class Text:
    """A query's text and its words."""

    sql: str
    tokens: tuple[Token, ...]

    @classmethod
    def of(cls, sql: str) -> Text:
        """A text cut into words."""
        return cls(sql, tuple(_words(sql)))

    def parse(self) -> list[exp.Expr | None]:
        """The statements of the text."""
        statements = _Parser(dialect="spark").parse(list(self.tokens), self.sql)
        return [s.transform(_unit_of_time, copy=False) if s else None for s in statements]

    def place(self, offset: int) -> str:
        """An offset as line and column, both counted from one."""
        before = self.sql[:offset]
        return f"{before.count(chr(10)) + 1}:{offset - before.rfind(chr(10))}"


def written(expression: exp.Expr) -> str:
    """A part of a query as text that Spark reads."""
    return _Generator(dialect="spark", normalize_functions=False, comments=False).generate(
        expression
    )


def _words(sql: str) -> Iterator[Token]:
    """The words of a text; what Spark reads as one constant is one word, as it stands."""
    # 1L comes as 1, ::, BIGINT: three words in one place.
    found = [token for _, (token, *_) in groupby(Spark().tokenize(sql), lambda t: t.start)]
    at = 0
    while at < len(found):
        token = found[at]
        end = _end_of_constant(found, at)
        if end > at:
            token.token_type = _CONSTANTS.get(token.token_type, TokenType.NUMBER)
            token.text = sql[token.start : found[end - 1].end + 1]
            token.end = found[end - 1].end
        elif token.token_type == TokenType.WINDOW and not _names_a_window(found, at):
            # The clause WINDOW w AS (…) has the same word as the function and its column.
            token.token_type = TokenType.VAR
        yield token
        at = max(end, at + 1)


def _end_of_constant(words: list[Token], at: int) -> int:
    """Where a constant that begins at a word ends: DATE '…', 'a' 'b', INTERVAL 1 HOUR 30 MINUTES.

    The word's own place if there is none.
    """
    start = at
    if words[at].token_type == TokenType.INTERVAL:
        return _end_of_interval(words, at)
    if words[at].text.upper() in _TYPES and _is(words, at + 1, TokenType.STRING):
        at += 1
    if not _is(words, at, *_CONSTANTS):
        return start
    while _is(words, at, *_STRINGS) and _is(words, at + 1, *_STRINGS):
        at += 1
    return at + 1


def _end_of_interval(words: list[Token], start: int) -> int:
    end = at = start + 1
    while True:
        if _is(words, at, TokenType.DASH, TokenType.PLUS):
            at += 1
        if not _is(words, at, TokenType.STRING, TokenType.NUMBER):
            break
        at += 1
        if _is_unit(words, at):
            at += 1
            if at < len(words) and words[at].text.upper() == "TO" and _is_unit(words, at + 1):
                at += 2
        elif not _is(words, at - 1, TokenType.STRING):
            break
        end = at
    return end if end > start + 1 else start


def _is(words: list[Token], at: int, *kinds: TokenType) -> bool:
    return at < len(words) and words[at].token_type in kinds


def _is_unit(words: list[Token], at: int) -> bool:
    return at < len(words) and words[at].text.upper().removesuffix("S") in _UNITS


def _names_a_window(words: list[Token], at: int) -> bool:
    return _is(words, at + 2, TokenType.ALIAS)


def _unit_of_time(node: exp.Expr) -> exp.Expr:
    """`timestampdiff(HOUR, a, b)`: the first argument is a word of the language, not a column."""
    if isinstance(node, exp.Anonymous) and node.name.casefold() in _WITH_UNIT:
        first, *rest = node.expressions or [None]
        if len(rest) == 2 and isinstance(first, exp.Column):
            first.replace(exp.Var(this=first.name))
    return node
