"""A text to one query, or an error in one line that says where the text is wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import TokenType

from headwater.errors import FlowError, UnsupportedError
from headwater.flow.callsite import callsite
from headwater.flow.sql.dialect import Text

_OPENINGS = (TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN)
_INTERNAL = re.compile(r"Required keyword: .*")
_UNCLOSED = re.compile(r"Missing (\S+) from \d+:(\d+)")
"""What sqlglot says of a quote without its end: the line, then the offset in the whole text."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A parsed query, with the text that it was parsed from."""

    text: Text
    query: exp.Expr
    site: str
    """Where in the user's code the text is."""

    def place(self, node: exp.Expr, *words: str) -> str:
        """Line and column of a part: of the nearest of some words before it, if any is there."""
        starts = [n.meta["start"] for n in node.walk() if "start" in n.meta]
        first = min(starts, default=len(self.text.sql))
        before = [t.start for t in self.text.tokens if t.start <= first and t.text.upper() in words]
        return self.text.place(before[-1] if before else first)

    def wrong(self, node: exp.Expr, problem: str) -> FlowError:
        """The error for a part that can't be what the user meant."""
        return FlowError(f"sql at {self.site}, {self.place(node)}: {problem}")

    def unsupported(self, node: exp.Expr, what: str, instead: str, *words: str) -> UnsupportedError:
        """The error for a part that a flow does not have, with what to write instead."""
        place = self.place(node, *words)
        return UnsupportedError(f"sql at {self.site}, {place}: {what} is not supported: {instead}")


def parse(sql: str) -> Statement:
    """The query that a text holds."""
    if not isinstance(sql, str):
        raise FlowError(f"sql takes the text of a query, not {type(sql).__name__}")
    text = _cut(sql)
    _expect_a_query(text)
    try:
        statements = [s for s in text.parse() if s is not None]
    except ParseError as error:
        raise FlowError(f"sql at {callsite()}, {_said(text, error)}") from error
    if len(statements) > 1:
        second = min(t.start for t in text.tokens if t.token_type == TokenType.SEMICOLON)
        raise UnsupportedError(
            f"sql at {callsite()}, {text.place(second)}: "
            "one query at a time; call flow.sql for each statement"
        )
    statement = Statement(text, statements[0], callsite())
    if not isinstance(statement.query, exp.Query):
        kind = type(statement.query).__name__.upper()
        raise statement.unsupported(statement.query, kind, "a query is a SELECT", kind)
    return statement


def _cut(sql: str) -> Text:
    try:
        return Text.of(sql)
    except TokenError as error:
        said = " ".join(str(error.__cause__ or error).split())
        if (unclosed := _UNCLOSED.fullmatch(said)) is not None:
            place = Text(sql, ()).place(int(unclosed[2]))
            said = f"{unclosed[1]} at {place} is never closed"
        raise FlowError(f"sql at {callsite()}: can't parse: {said}") from error


def _expect_a_query(text: Text) -> None:
    if not text.tokens:
        raise FlowError(f"sql at {callsite()}: the text is empty; write a SELECT")
    first = text.tokens[0]
    if first.token_type not in _OPENINGS:
        raise UnsupportedError(
            f"sql at {callsite()}, {text.place(first.start)}: {first.text.upper()} is not "
            "supported: a query begins with SELECT or WITH, its rows go to flow.sink(name, frame)"
        )


def _said(text: Text, error: ParseError) -> str:
    """What sqlglot says, with the place counted from the start of the word."""
    (first, *_) = error.errors
    said = _INTERNAL.sub("something is missing", str(first["description"]))
    word, line, end = first["highlight"] or "", first["line"], first["col"]
    near = f" at {word!r}" if word else ""
    return f"{line}:{max(1, end - len(word) + 1)}: can't parse{near}: {said}"
