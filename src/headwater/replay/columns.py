"""Where a column comes from: followed back, unchanged, through steps that pass it on."""

from __future__ import annotations

from headwater.flow import nodes
from headwater.flow.terms import As, Ref, Term


def passed_on(node: nodes.Node, column: str) -> str | None:
    """The name that a step's column has in its only input, if the step passes it on as it is."""
    match node:
        case (
            nodes.Filter()
            | nodes.Alias()
            | nodes.Watermark()
            | nodes.Drop()
            | nodes.Deduplicate()
            | nodes.Sink()
        ):
            return column
        case nodes.Project(columns=columns) | nodes.Explode(columns=columns):
            made = [e.term for e in columns if e.name == column]
            return _plain(made[0], node.input) if len(made) == 1 else None
        case nodes.WithColumns(columns=columns):
            changed = [expr.term for name, expr in columns if name == column]
            return _plain(changed[-1], node.input) if changed else column
        case nodes.Rename(names=names):
            old = [before for before, after in names if after == column]
            return old[-1] if old else column
        case nodes.FlatMap(keep=keep) | nodes.Map(keep=keep):
            return column if column in keep else None
        case nodes.Service(column=made):
            return column if column != made else None
    return None


def source_column(node: nodes.Node, column: str) -> tuple[nodes.Source, str] | None:
    """The source and its column behind a column of a step, through steps of one input."""
    while not isinstance(node, nodes.Source):
        before = passed_on(node, column)
        if before is None or len(node.inputs) != 1:
            return None
        node, column = node.input, before
    return node, column


def aggregate_key(sink: nodes.Node, column: str) -> tuple[nodes.Aggregate, int] | None:
    """The last aggregate above a sink and which of its keys a column of the sink is."""
    node = sink
    while not isinstance(node, nodes.Aggregate):
        before = passed_on(node, column)
        if before is None or len(node.inputs) != 1:
            return None
        node, column = node.input, before
    if isinstance(node, nodes.GroupFunction) and column not in node.keep:
        # What the function made, whatever it is called.
        return None
    names = [key.name for key in node.keys]
    return (node, names.index(column)) if column in names else None


def _plain(term: Term, above: nodes.Node) -> str | None:
    """The column of the step above that a term is, if it is nothing but one."""
    match term:
        case As(child=child, names=(_,)):
            return _plain(child, above)
        case Ref(parts=(name,)):
            return name
        case Ref(parts=(alias, name)) if isinstance(above, nodes.Alias) and above.name == alias:
            return name
    return None
