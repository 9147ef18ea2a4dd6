"""What a query may hold: everything else is refused by its name, before a step is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from headwater.flow.sql.items import is_window

if TYPE_CHECKING:
    from headwater.flow.sql.parsing import Statement

_NESTED = "join with it, or name its rows in WITH and join those"
_LEVELS = "write a GROUP BY for each level and unite them with UNION ALL"
_FIRST = "a stream has no first rows; use WHERE, or store.results(sink, limit=…)"
_ORDER = "a stream has no end to sort at: sort the answer, store.results(sink).sort_by(…)"
_RUN = "leave it out: it changes how Spark runs, not what the flow means"
_OVER = "group by window(…) and aggregate, then join if each row needs the value"
_TIME = "a source reads what it is given; choose the version there"

_SUPPORTED: dict[type[exp.Expr], frozenset[str]] = {
    kind: frozenset(parts.split())
    for kind, parts in {
        exp.Select: "with_ expressions distinct from_ joins laterals where group having",
        exp.SetOperation: "with_ this expression distinct",
        exp.Subquery: "with_ this alias",
        exp.Table: "this db catalog alias",
        exp.Join: "this on using side kind method",
        exp.Lateral: "this view outer alias",
        exp.With: "expressions",
        exp.CTE: "this alias",
        exp.Group: "expressions all",
        exp.Star: "except_",
    }.items()
}
"""The parts that are translated; sqlglot knows more, from many dialects."""

_PARTS: dict[str, tuple[str, str]] = {
    "order": ("ORDER BY", _ORDER),
    "sort": ("SORT BY", _ORDER),
    "cluster": ("CLUSTER BY", _RUN),
    "distribute": ("DISTRIBUTE BY", _RUN),
    "limit": ("LIMIT", _FIRST),
    "offset": ("OFFSET", _FIRST),
    "qualify": ("QUALIFY", _OVER),
    "windows": ("WINDOW", _OVER),
    "pivots": ("PIVOT or UNPIVOT", "write sum(CASE WHEN … END) AS …, or explode(array(…))"),
    "sample": ("TABLESAMPLE", "filter by a hash: WHERE xxhash64(id) % 100 < 5"),
    "hint": ("a hint", _RUN),
    "version": ("VERSION AS OF", _TIME),
    "when": ("TIMESTAMP AS OF", _TIME),
    "into": ("INTO", "end the frame in flow.sink(name, frame)"),
    "locks": ("FOR UPDATE", "leave it out"),
    "recursive": ("WITH RECURSIVE", "write out each level as a query"),
    "rollup": ("ROLLUP", _LEVELS),
    "cube": ("CUBE", _LEVELS),
    "grouping_sets": ("GROUPING SETS", _LEVELS),
    "by_name": ("UNION ALL BY NAME", "list the columns of both queries in the same order"),
    "joins": ("a join in parentheses", "write the joins one after another, or a subquery"),
    "replace": ("* REPLACE", "list the columns"),
    "rename": ("* RENAME", "list the columns"),
}

_NODES: dict[type[exp.Expr], tuple[str, str, tuple[str, ...]]] = {
    exp.Window: ("a window function (OVER)", _OVER, ()),
    exp.Intersect: ("INTERSECT", "join on all columns", ("INTERSECT",)),
    exp.Except: ("EXCEPT", "use LEFT JOIN and WHERE … IS NULL", ("EXCEPT", "MINUS")),
    exp.Rollup: ("ROLLUP", _LEVELS, ("ROLLUP",)),
    exp.Cube: ("CUBE", _LEVELS, ("CUBE",)),
    exp.GroupingSets: ("GROUPING SETS", _LEVELS, ("GROUPING SETS",)),
    exp.Values: ("VALUES", "make them a source: flow.source(name, df=…)", ("VALUES",)),
    exp.Unnest: ("UNNEST", "use LATERAL VIEW explode(…)", ("UNNEST",)),
    exp.Placeholder: ("a parameter", "write the value into the text", (":", "?")),
    exp.Parameter: ("a parameter", "write the value into the text", ("@", "$")),
}


def refuse(statement: Statement) -> None:
    """Raise for the first part of a query that can't be translated."""
    for node in statement.query.walk(bfs=False):
        for kind, (what, instead, words) in _NODES.items():
            if isinstance(node, kind):
                at = node.expression if isinstance(node, exp.SetOperation) else node
                raise statement.unsupported(at, what, instead, *words)
        match node:
            case exp.Join():
                _refuse_join(statement, node)
            case exp.Union(args={"distinct": True}):
                instead = "use UNION ALL, and SELECT DISTINCT over it to drop equal rows"
                raise statement.unsupported(node.expression, "UNION without ALL", instead, "UNION")
            case exp.Distinct():
                _refuse_distinct(statement, node)
            case exp.Table(this=exp.Func()):
                instead = "make its rows a source: flow.source(name, df=…)"
                raise statement.unsupported(node, "a function in FROM", instead)
            case exp.Lateral(args={"view": False}) | exp.Lateral(args={"view": None}):
                instead = "use LATERAL VIEW explode(…)"
                raise statement.unsupported(node, "LATERAL", instead, "LATERAL")
            case exp.Anonymous() if is_window(node):
                _refuse_window(statement, node)
            case exp.Query():
                _refuse_as_value(statement, node)
        _refuse_parts(statement, node)


def _refuse_parts(statement: Statement, node: exp.Expr) -> None:
    for kind, supported in _SUPPORTED.items():
        if not isinstance(node, kind):
            continue
        for part, value in node.args.items():
            if value and part not in supported:
                name = part.strip("_").replace("_", " ").upper()
                what, instead = _PARTS.get(part, (name, "leave it out"))
                words = (what, what.split()[0], "PIVOT", "UNPIVOT")
                raise statement.unsupported(_first(value) or node, what, instead, *words)


def _first(value: Any) -> exp.Expr | None:
    value = value[0] if isinstance(value, list) else value
    return value if isinstance(value, exp.Expr) else None


def _refuse_join(statement: Statement, join: exp.Join) -> None:
    side, kind, method = join.side, join.kind, join.method
    if side in ("", "LEFT") and kind in ("", "INNER", "OUTER") and not method:
        if join.args.get("on") is None and not join.args.get("using"):
            raise statement.unsupported(
                join.this, "JOIN without ON or USING", "say which rows are a pair", "JOIN"
            )
        return
    if kind == "CROSS":
        instead = "write JOIN … ON a condition; two streams need a bound on time"
        raise statement.unsupported(
            join.this, "CROSS JOIN, or a comma in FROM,", instead, "CROSS", ","
        )
    words = [word for word in (method, side, kind) if word and word != "OUTER"]
    instead = {
        "RIGHT": "swap the sides and use LEFT JOIN",
        "FULL": "use INNER or LEFT JOIN",
        "SEMI": "use JOIN with SELECT DISTINCT over the left columns",
        "ANTI": "use LEFT JOIN and WHERE … IS NULL",
        "NATURAL": "name the columns: USING (…)",
    }.get(words[-1], "use INNER or LEFT JOIN")
    raise statement.unsupported(join.this, f"{' '.join(words)} JOIN", instead, words[0])


def _refuse_distinct(statement: Statement, node: exp.Distinct) -> None:
    if not isinstance(node.parent, exp.Select):
        instead = "Spark has it on no stream; use size(collect_set(…))"
        raise statement.unsupported(node, "DISTINCT in an aggregate", instead, "DISTINCT")
    if node.args.get("on") is not None:
        instead = "use frame.dropDuplicates([…])"
        raise statement.unsupported(node, "DISTINCT ON", instead, "DISTINCT")


def _refuse_as_value(statement: Statement, query: exp.Query) -> None:
    """A query belongs into FROM, WITH or UNION ALL; elsewhere it would be a value."""
    match query.parent:
        case None | exp.From() | exp.Join() | exp.CTE() | exp.SetOperation() | exp.Subquery():
            return
        case exp.In():
            raise statement.unsupported(query, "IN (SELECT …)", _NESTED, "IN")
        case exp.Exists():
            raise statement.unsupported(query, "EXISTS (SELECT …)", _NESTED, "EXISTS")
        case exp.Any() | exp.All():
            raise statement.unsupported(
                query, "ANY or ALL (SELECT …)", _NESTED, "ANY", "ALL", "SOME"
            )
    raise statement.unsupported(query, "a subquery as a value", _NESTED, "SELECT", "WITH")


def _refuse_window(statement: Statement, call: exp.Anonymous) -> None:
    """A window makes several rows of one; it belongs among the keys of a group."""
    clauses = (exp.Where, exp.Join, exp.Lateral, exp.Group, exp.Having, exp.Select)
    match call.find_ancestor(*clauses):
        case exp.Group() | exp.Having() | exp.Select(args={"group": exp.Group()}):
            return
    raise statement.unsupported(call, f"{call.name}(…) outside GROUP BY", "put it into GROUP BY")
