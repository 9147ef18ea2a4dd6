"""`select` lists: stars, generators and what they may not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from headwater.errors import FlowError, UnsupportedError
from headwater.flow import expressions as ex
from headwater.flow import nodes
from headwater.flow.terms import As, Call, Opaque, Ref, Star, Term, rewrite, unaliased

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from headwater.flow.references import Attribute

GENERATORS = ("explode", "explode_outer", "posexplode", "posexplode_outer")
_REFUSED = ("inline", "inline_outer", "stack", "json_tuple", "flatten_outer")


def expand_stars(
    exprs: list[ex.Expr], attributes: Callable[[], tuple[Attribute, ...]], method: str
) -> list[ex.Expr]:
    """The list with each `*` replaced by the columns that it stands for.

    Lowerings add columns of their own, which a star must not catch.
    """
    out: list[ex.Expr] = []
    for expr in exprs:
        if isinstance(expr.term, Star):
            out.extend(_by_parts(p) for p in _columns(expr.term, attributes(), method))
        elif any(isinstance(t, Star) for t in expr.term.walk()):
            out.append(_expand_inside(expr, attributes(), method))
        else:
            out.append(expr)
    return out


def _columns(star: Star, attributes: tuple[Attribute, ...], method: str) -> list[tuple[str, ...]]:
    own = [a for a in attributes if not star.target or a.qualifier == star.target]
    if not own:
        raise FlowError(f"{method}: {star} has no columns; is there an alias {star.target[0]!r}?")
    names = [a.name.casefold() for a in attributes]
    return [
        (a.name,) if names.count(a.name.casefold()) == 1 else (*a.qualifier, a.name) for a in own
    ]


def _by_parts(parts: tuple[str, ...]) -> ex.Expr:
    column = F.col(".".join(f"`{part.replace('`', '``')}`" for part in parts))
    return ex.column(column, what="*")


def _expand_inside(expr: ex.Expr, attributes: tuple[Attribute, ...], method: str) -> ex.Expr:
    if any(isinstance(t, Opaque) for t in expr.term.walk()):
        raise UnsupportedError(f"{method}: list the columns instead of * in {expr}")

    def expanded(term: Term) -> Term | None:
        if not isinstance(term, Call) or not any(isinstance(a, Star) for a in term.args):
            return None
        args: list[Term] = []
        for arg in term.args:
            if isinstance(arg, Star):
                args.extend(Ref(p) for p in _columns(arg, attributes, method))
            else:
                args.append(rewrite(arg, expanded))
        return Call(term.name, tuple(args), term.distinct)

    return ex.sql(rewrite(expr.term, expanded).text(), what=method)


def node_of(exprs: list[ex.Expr], method: str) -> tuple[type[nodes.Node], dict[str, Any]]:
    """The kind of node that a select list is, and its parameters."""
    refuse_windows(exprs, method)
    generators = [i for i, e in enumerate(exprs) if _generator(e) is not None]
    if not generators:
        return nodes.Project, {"columns": tuple(exprs)}
    if len(generators) > 1:
        raise UnsupportedError(f"{method} takes one explode; use a second {method} for another")
    at = generators[0]
    function = _generator(exprs[at])
    assert function is not None
    names = _names_of(exprs[at], function)
    return nodes.Explode, {"columns": tuple(exprs), "at": at, "function": function, "names": names}


def exploding(columns: list[str], made: dict[str, ex.Expr]) -> list[ex.Expr] | None:
    """`withColumn(name, F.explode(…))` as a select list; None when nothing explodes."""
    if not any(_generator(e) for e in made.values()):
        return None
    new = {name: ex.column(e.column.alias(name), what="withColumn") for name, e in made.items()}
    kept = [new.pop(c) if c in new else _by_parts((c,)) for c in columns]
    return [*kept, *new.values()]


def refuse_windows(exprs: Iterable[ex.Expr], method: str) -> None:
    """A window outside groupBy multiplies rows; it belongs among the keys of a groupBy."""
    for expr in exprs:
        for term in expr.term.walk():
            if isinstance(term, Call) and term.name in ("window", "session_window"):
                raise UnsupportedError(f"{method}: put {term} into groupBy(…)")


def _generator(expr: ex.Expr) -> Any:
    term = unaliased(expr.term)
    if not isinstance(term, Call):
        return None
    if term.name in _REFUSED:
        raise UnsupportedError(f"{term.name} is not supported: use {', '.join(GENERATORS)}")
    return term.name if term.name in GENERATORS else None


def _names_of(expr: ex.Expr, function: str) -> tuple[str, ...]:
    positions = function.startswith("pos")
    if isinstance(expr.term, As):
        names = expr.term.names
        if positions and len(names) != 2:
            raise FlowError(f"{function} makes two columns; give both names: alias('pos', 'col')")
        if not positions and len(names) == 2:
            raise UnsupportedError(f"{function} of a map: use map_entries and explode the array")
        return names
    return ("pos", "col") if positions else ("col",)
