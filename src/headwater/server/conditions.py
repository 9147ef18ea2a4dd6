"""SQL conditions that come by REST: parsed, and taken only where all of their parts are known.

A condition may look at a row's own columns and compute with them. It may not read anything else,
and nothing in it may grow: `repeat` and its like would take all memory before any limit holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.errors import PredicateError
from headwater.query.predicate import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

CLASSES = frozenset(
    "COLUMN_REF CONSTANT FUNCTION OPERATOR COMPARISON CONJUNCTION CASE CAST BETWEEN COLLATE "
    "TYPE".split()
)
"""Kinds of expressions that are taken; what else DuckDB has is not: queries, windows, lambdas."""
FUNCTIONS = frozenset(
    (
        "+ - * / // % ** ^ & | << >> ~ @ || ^@ ~~ !~~ ~~* !~~* ~~~ "
        "like_escape ilike_escape not_like_escape not_ilike_escape "
        "regexp_matches regexp_full_match regexp_extract "
        "abs sign ceil ceiling floor round trunc sqrt cbrt pow power exp ln log log2 log10 "
        "sin cos tan asin acos atan atan2 degrees radians pi greatest least isnan isinf isfinite "
        "gcd lcm mod xor bit_count add subtract multiply divide fdiv fmod "
        "length len strlen char_length character_length lower lcase upper ucase trim ltrim rtrim "
        "left right substr substring reverse contains starts_with ends_with prefix suffix "
        "position strpos instr ascii unicode ord chr concat split_part strip_accents md5 sha256 "
        "hash typeof "
        "date_part datepart date_trunc datetrunc date_diff datediff date_sub datesub date_add "
        "year month day hour minute second millisecond microsecond quarter week weekofyear "
        "dayofmonth dayofweek isodow dayofyear dayname monthname last_day age time_bucket "
        "epoch epoch_ms epoch_us epoch_ns to_timestamp make_date make_time make_timestamp "
        "make_timestamptz now today current_date current_time get_current_timestamp "
        "get_current_time current_localtimestamp current_localtime transaction_timestamp "
        "timezone strftime strptime try_strptime "
        "to_years to_quarters to_months to_weeks to_days to_hours to_minutes to_seconds "
        "to_milliseconds to_microseconds "
        "array_extract list_extract list_element element_at map_extract map_extract_value "
        "struct_extract struct_extract_at list_contains list_has array_contains array_has "
        "list_position array_length cardinality map_contains coalesce ifnull nullif if"
    ).split()
)
"""Functions and signs that are taken: none makes more of what it is given."""
_MADE = "ARRAY_CONSTRUCTOR"
_BRACKETS = 200
"""What DuckDB's parser takes to find that many of them are not closed grows with their cube."""


def checked(where: str | None) -> str | None:
    """A condition that may be asked of the store; raises `PredicateError` where it may not.

    >>> checked("speed > 3 and upper(station) like 'K%'")
    "speed > 3 and upper(station) like 'K%'"
    >>> checked("n = (select count(*) from flows)")
    Traceback (most recent call last):
        ...
    headwater.errors.PredicateError: a condition may not have a query in it
    """
    if where is None:
        return None
    if "\0" in where:
        raise PredicateError("a condition is a line of text, without zero bytes")
    if sum(map(where.count, "([{")) > _BRACKETS:
        raise PredicateError(f"a condition has {_BRACKETS} brackets at most")
    for part in _parts(parsed(where)):
        kind = part.get("class")
        if kind in ("SUBQUERY", "WINDOW") or str(part.get("type", "")).endswith("_NODE"):
            raise PredicateError("a condition may not have a query in it")
        if (kind is not None and kind not in CLASSES) or part.get("type") == _MADE:
            word = str(part.get("type", kind)).lower().replace("_", " ")
            raise PredicateError(f"a condition may not have this in it: {word}")
        if kind == "FUNCTION":
            _check_call(part)
    return where


def _check_call(part: dict[str, Any]) -> None:
    name = str(part.get("function_name", "")).lower()
    foreign = part.get("catalog") or part.get("schema") not in ("", "main", None)
    if foreign or name not in FUNCTIONS:
        raise PredicateError(
            f"a condition may not call {name[:80]!r}: it compares a row's columns, with functions "
            "for numbers, texts and times"
        )
    if part.get("filter") or part.get("distinct"):
        raise PredicateError(f"a condition may not aggregate, as with {name!r}")


def _parts(tree: Any) -> Iterator[dict[str, Any]]:
    """Every part of a parsed condition."""
    left = [tree]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            yield part
            left.extend(part.values())
        elif isinstance(part, list):
            left.extend(part)
