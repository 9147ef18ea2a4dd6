"""What the text of a query or an expression tells: tables, columns, and how many rows come out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from headwater.compose.cardinality import FEWER, ONE, UNKNOWN, Cardinality

_DEEP = "is nested too deeply to be read"


@dataclass(frozen=True, slots=True)
class Query:
    """A query as far as its text tells."""

    wrong: str | None = None
    """Why it can't be read."""
    tables: tuple[str, ...] = ()
    cardinality: Cardinality = UNKNOWN
    unaltered: bool = False
    """Whether its rows are those of its one table, as they are (`SELECT * … WHERE`)."""
    star: bool = False
    columns: tuple[str, ...] | None = None
    """The names of its columns beside those of `*`; None where one has no name."""
    used: tuple[tuple[str | None, str], ...] = ()
    """The columns it names, each with its table's alias, or the table of a single one."""


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression: the columns it names; `wrong` says why it could not be read."""

    columns: tuple[tuple[str, ...], ...] = ()
    """Each as its parts, `A.speed` as two."""
    wrong: str | None = None


@lru_cache(maxsize=20_000)
def query_of(text: str) -> Query:
    """A query, read by sqlglot in Spark's dialect.

    >>> str(query_of("select * from storms where cells > 3").cardinality)
    '<1'
    """
    from sqlglot import exp, parse
    from sqlglot.errors import SqlglotError

    try:
        trees = [tree for tree in parse(text, read="spark") if tree is not None]
    except SqlglotError as error:
        return Query(wrong=f"can't be read: {_first_line(error)}")
    except RecursionError:
        return Query(wrong=_DEEP)
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        return Query(wrong="is one SELECT")
    tree = trees[0]
    own = {cte.alias_or_name.casefold() for cte in tree.find_all(exp.CTE)}
    tables = {t.name: None for t in tree.find_all(exp.Table) if t.name.casefold() not in own}
    names = {t.alias_or_name: t.name for t in tree.find_all(exp.Table)}
    used = tuple(dict.fromkeys(_columns(tree, names)))
    if not isinstance(tree, exp.Select):
        return Query(tables=tuple(tables), used=used)
    items = tree.expressions
    star = any(item.is_star for item in items)
    named = [item.alias_or_name for item in items if not item.is_star]
    simple = len(tables) == 1 and len(names) == 1 and _is_simple(tree)
    clear = not any(map(_excepts, items))
    ratio = (FEWER if tree.args.get("where") else ONE) if simple else UNKNOWN
    return Query(
        tables=tuple(tables),
        cardinality=ratio,
        unaltered=simple and star and len(items) == 1 and clear,
        star=star,
        columns=tuple(named) if all(named) and (simple or not star) and clear else None,
        used=used if not own and not tree.find(exp.Subquery) else (),
    )


def _is_simple(select: Any) -> bool:
    """Whether each row of the one table gives one row or none."""
    from sqlglot import exp

    more = ("joins", "group", "distinct", "limit", "having", "laterals", "qualify", "with_", "with")
    if any(select.args.get(name) for name in more) or select.find(exp.Subquery):
        return False
    # Whether a function aggregates or makes rows is in sqlglot's own list of them.
    # One that it does not know may do either.
    kinds = (exp.AggFunc, exp.Explode, exp.UDTF, exp.Window, exp.Anonymous)
    return not any(item.find(*kinds) for item in select.expressions)


def _excepts(item: Any) -> bool:
    """Whether a `*` leaves out or replaces columns."""
    from sqlglot import exp

    star = item if isinstance(item, exp.Star) else item.find(exp.Star)
    return star is not None and any(star.args.get(name) for name in star.args if star.args[name])


@lru_cache(maxsize=20_000)
def expression_of(text: str) -> Expression:
    """The columns that an expression names.

    >>> sorted(expression_of("station = 'KIND' and dbz[0] > A.threshold").columns)
    [('A', 'threshold'), ('dbz',), ('station',)]
    """
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        tree = parse_one(text, read="spark")
    except SqlglotError as error:
        return Expression(wrong=_first_line(error))
    except RecursionError:
        return Expression(wrong=_DEEP)
    inner = {name.name for each in tree.find_all(exp.Lambda) for name in each.expressions}
    return Expression(tuple(dict.fromkeys(_roots(tree, inner))))


def _roots(tree: Any, inner: set[str]) -> list[tuple[str, ...]]:
    from sqlglot import exp

    return [
        tuple(part.name for part in column.parts)
        for column in tree.find_all(exp.Column)
        if not isinstance(column.this, exp.Star) and column.parts[0].name not in inner
    ]


def _columns(tree: Any, names: dict[str, str]) -> list[tuple[str | None, str]]:
    from sqlglot import exp

    made = {alias.alias for alias in tree.find_all(exp.Alias)}
    inner = {name.name for each in tree.find_all(exp.Lambda) for name in each.expressions}
    only = next(iter(names.values())) if len(names) == 1 else None
    found: list[tuple[str | None, str]] = []
    for column in tree.find_all(exp.Column):
        parts = [part.name for part in column.parts]
        if isinstance(column.this, exp.Star) or parts[0] in inner:
            continue
        if len(parts) > 1 and parts[0] in names:
            found.append((names[parts[0]], parts[1]))
        elif only is not None and parts[0] not in made:
            found.append((only, parts[0]))
    return found


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].replace("\x1b[4m", "").replace("\x1b[0m", "").rstrip(".")
