"""Whether a step gives the same rows whenever it is run on the same rows.

Replay needs that of every step: a result is computed again from its source records, and its set
is right only if the steps decide as they did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from headwater.flow import nodes
from headwater.flow.expressions import Expr
from headwater.flow.terms import Call, Opaque, Term

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

F = TypeVar("F", bound="Callable[..., object]")

_DECLARED = "__hw_deterministic__"

_CHANGING = frozenset(
    """rand randn random uniform randstr uuid shuffle current_timestamp now current_date curdate
    current_time localtimestamp monotonically_increasing_id spark_partition_id input_file_name
    input_file_block_start input_file_block_length first first_value last last_value any_value
    java_method reflect try_reflect""".split()
)
_ORDERED = frozenset("collect_list collect_set array_agg listagg string_agg".split())
_INDIFFERENT = frozenset(
    "size cardinality sort_array array_sort array_contains array_min array_max".split()
)


def deterministic(function: F) -> F:
    """Declare that a Python function of a step gives the same answer for the same row, always.

    Without it, only `capture="eager"` can trace a flow that uses the function: the other modes
    run it again to find out what a result came from.

    >>> @deterministic
    ... def words(row):
    ...     return [(word,) for word in row.text.split()]
    >>> is_declared(words)
    True
    """
    setattr(function, _DECLARED, True)
    return function


def is_declared(function: object) -> bool:
    """Whether a Python function was declared deterministic."""
    return bool(getattr(function, _DECLARED, False))


def why_not(node: nodes.Node) -> str | None:
    """Why a step may give other rows when it is run again, or None if it can't."""
    function = function_of(node)
    if function is not None and not is_declared(function):
        return (
            f"the Python function {nodes.name_of(function)!r} is not declared with "
            "@headwater.deterministic"
        )
    if isinstance(node, nodes.Service) and isinstance(node.target, str):
        return "a service may answer otherwise when it is asked again"
    if isinstance(node, nodes.Ordered):
        return "what it makes depends on everything that arrived before"
    for expr in _expressions(node):
        if (found := _changing(expr.term)) is not None:
            return found
    return None


def function_of(node: nodes.Node) -> Callable[..., object] | None:
    """The Python function that a step runs, if it runs one."""
    match node:
        case nodes.FlatMap() | nodes.Map() | nodes.GroupFunction():
            return node.function
        case nodes.Service(target=target) if not isinstance(target, str):
            return target
    return None


def _expressions(node: nodes.Node) -> Iterator[Expr]:
    match node:
        case nodes.Filter(condition=condition):
            yield condition
        case nodes.Project(columns=columns) | nodes.Explode(columns=columns):
            yield from columns
        case nodes.WithColumns(columns=named) | nodes.Service(request=named):
            yield from (expr for _, expr in named)
        case nodes.Aggregate(keys=keys, columns=columns):
            yield from (*keys, *columns)
        case nodes.Join(on=Expr() as condition):
            yield condition


def _changing(term: Term, above: str = "") -> str | None:
    name = ""
    match term:
        case Opaque(label=opaque):
            if opaque.startswith("python:"):
                return f"the Python function {opaque.removeprefix('python:')!r} is not declared"
            name = opaque.split(" ")[0].lower()
        case Call(name=called):
            name = called
    if name in _CHANGING:
        return f"{name}() differs from run to run"
    if name in _ORDERED and above not in _INDIFFERENT:
        return f"the order in {name}() differs from run to run; sort it, or take its size"
    for child in term.children():
        if (found := _changing(child, name)) is not None:
            return found
    return None
