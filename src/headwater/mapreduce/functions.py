"""What users give as map, combine and reduce: functions of their own, or native expressions."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import sqlglot
from sqlglot import exp

from headwater.errors import FlowError

if TYPE_CHECKING:
    from collections.abc import Callable

WORDS = r"explode(array_remove(split(value, '[^\\p{L}\\p{N}]+'), '')) AS word, 1 AS n"
NAMED_MAPS = {"words": WORDS}
"""Native maps by name: `words` gives each word of a line with a 1."""

NAMED_REDUCES = {"sum": "sum", "min": "min", "max": "max", "count": "sum"}
"""Native reduces by name that combine, and what makes one of several partial results."""

Takes = Literal["record", "pandas", "batch", "table"]


@dataclass(frozen=True, slots=True)
class NativeMap:
    """Expressions of Spark's over a record's columns, and a condition."""

    select: tuple[str, ...]
    where: str | None = None
    name: str = "sql"


@dataclass(frozen=True, slots=True)
class FunctionMap:
    """A function of a record, or of a batch of records."""

    function: Callable[[Any], Any]
    takes: Takes
    name: str


@dataclass(frozen=True, slots=True)
class NativeReduce:
    """An aggregate of Spark's, over the value's column."""

    aggregate: str
    combines: str | None = None
    """What makes one of several partial results; None where only all values together do."""


@dataclass(frozen=True, slots=True)
class FunctionReduce:
    """A function of a key and its values."""

    function: Callable[[Any, Any], Any]
    name: str


MapStep = NativeMap | FunctionMap
ReduceStep = NativeReduce | FunctionReduce


def map_step(given: str | Callable[[Any], Any]) -> MapStep:
    """A map: a function, the name of a native one, or SQL text `a AS key, b AS value WHERE c`."""
    if isinstance(given, str):
        return _native_map(given)
    if not callable(given):
        raise FlowError(f"map={given!r} is neither a function nor SQL text")
    return FunctionMap(given, taken(given), _name(given))


def taken(function: Callable[..., Any]) -> Takes:
    """What a map function takes, as its parameter is annotated: a record if that says nothing.

    >>> def f(frame: "pd.DataFrame"): ...
    >>> taken(f), taken(lambda line: [])
    ('pandas', 'record')
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return "record"
    said = parameters[0].annotation if parameters else None
    # Under `from __future__ import annotations` it is a text.
    text = said if isinstance(said, str) else f"{getattr(said, '__name__', '')}"
    kinds: dict[str, Takes] = {"DataFrame": "pandas", "RecordBatch": "batch", "Table": "table"}
    return kinds.get(text.strip("'\"").rpartition(".")[2], "record")


def reduce_step(given: str | Callable[[Any, Any], Any], value: str) -> ReduceStep:
    """A reduce: a function of (key, values), a name, or an SQL aggregate of the value's column."""
    if isinstance(given, str):
        if given in NAMED_REDUCES:
            column = value.replace("`", "``")
            return NativeReduce(f"{given}(`{column}`)", NAMED_REDUCES[given])
        return NativeReduce(_aggregate(given))
    if not callable(given):
        raise FlowError(f"reduce={given!r} is neither a function of (key, values) nor SQL text")
    _require_two(given, "reduce")
    return FunctionReduce(given, _name(given))


def combine_step(
    given: bool | str | Callable[[Any, Any], Any] | None, reduce: ReduceStep, value: str
) -> ReduceStep | None:
    """A combiner: the reduce itself where it is associative, or another; None for none."""
    if given is None:
        native = isinstance(reduce, NativeReduce) and reduce.combines is not None
        return reduce if native else None
    if given is False:
        return None
    if given is True:
        if isinstance(reduce, NativeReduce) and reduce.combines is None:
            raise FlowError(
                f"combine=True: reduce {reduce.aggregate!r} is not known to be associative; name "
                f"one of {', '.join(NAMED_REDUCES)}, or a function"
            )
        return reduce
    made = reduce_step(given, value)
    if isinstance(made, NativeReduce) and made.combines is None:
        raise FlowError(
            f"combine={given!r} is none of {', '.join(NAMED_REDUCES)}, nor a function of (key, "
            "values)"
        )
    if given == "count":
        # The reduce would be given counts for values, and not know.
        raise FlowError("combine='count' changes what values mean; give it as reduce= alone")
    return made


def _native_map(text: str) -> NativeMap:
    name = text if text in NAMED_MAPS else "sql"
    sql = NAMED_MAPS.get(text, text)
    stripped = sql.strip().removeprefix("SELECT ").removeprefix("select ")
    try:
        found = sqlglot.parse_one(f"SELECT {stripped}", read="spark")
    except sqlglot.ParseError as error:
        raise _no_map(text, str(error).splitlines()[0]) from error
    if not isinstance(found, exp.Select):
        raise _no_map(text, "it is no list of expressions")
    allowed = {"expressions", "where", "kind", "hint", "operation_modifiers"}
    for part, value in found.args.items():
        if value and part not in allowed:
            raise _no_map(text, f"{part} has no place in a map")
    where = found.args.get("where")
    # Spark reads the user's own text, not what another parser would make of it.
    body, condition = stripped, None
    if where is not None:
        at = _where(stripped)
        body, condition = stripped[:at], stripped[at + len("where") :].strip()
    return NativeMap(tuple(_split(body, len(found.expressions))), condition, name)


def _where(text: str) -> int:
    """Where the word WHERE stands, by the tokens of the text."""
    for token in sqlglot.tokenize(text, read="spark"):
        if token.token_type.name == "WHERE":
            return int(token.start)
    raise FlowError(f"map={text!r}: no WHERE found")


def _split(text: str, count: int) -> list[str]:
    """The expressions between the commas outside of brackets."""
    found, depth, start = [], 0, 0
    for token in sqlglot.tokenize(text, read="spark"):
        kind = token.token_type.name
        depth += kind in ("L_PAREN", "L_BRACKET", "L_BRACE")
        depth -= kind in ("R_PAREN", "R_BRACKET", "R_BRACE")
        if kind == "COMMA" and not depth:
            found.append(text[start : token.start].strip())
            start = token.end + 1
    found.append(text[start:].strip())
    assert len(found) == count, f"{text} has {count} expressions"
    return found


def _aggregate(text: str) -> str:
    try:
        sqlglot.parse_one(text, read="spark")
    except sqlglot.ParseError as error:
        said = str(error).splitlines()[0]
        raise FlowError(
            f"reduce={text!r} is no SQL ({said}); give an aggregate such as 'avg(n)', one of "
            f"{', '.join(NAMED_REDUCES)}, or a function"
        ) from error
    return text


def _no_map(text: str, why: str) -> FlowError:
    return FlowError(
        f"map={text!r} is no map ({why}); give a function, {', '.join(NAMED_MAPS)}, or SQL such as "
        "'lower(value) AS word, 1 AS n WHERE value <> \"\"'"
    )


def _require_two(function: Callable[..., Any], what: str) -> None:
    try:
        inspect.signature(function).bind(None, None)
    except TypeError as error:
        raise FlowError(f"{what}={_name(function)} must take a key and its values") from error
    except ValueError:
        return


def _name(function: object) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
