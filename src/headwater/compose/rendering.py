"""A plan as a table of text, as a Mermaid picture and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.compose.plan import Plan

_SHAPES = {"source": ("[(", ")]"), "static": ("[/", "/]"), "sink": ("([", "])")}


def as_text(plan: Plan) -> str:
    """A row for each node, then sub-flows, units, streams, and joins that are missing."""
    flow = plan.composition
    number = {name: each.number for each in plan.subflows for name in each.nodes}
    rows: list[tuple[str, ...]] = [
        ("node", "kind", "reads", "label", "cardinality", "runtime", "sub-flow")
    ]
    rows += [
        (
            name,
            node.kind + ("*" if name in plan.promoted else ""),
            ", ".join(port.target for port in node.inputs),
            str(plan.labels[name]),
            _cardinality(plan, name),
            plan.runtimes[name],
            str(number[name]),
        )
        for name, node in flow.nodes.items()
    ]
    lines = [f"flow {flow.name}: {_count(plan)}", "", *_aligned(rows)]
    if plan.promoted:
        lines += ["", "* static by its kind, streaming because it reads a stream"]
    lines += ["", "units, which are deployed and changed as one:"]
    lines += [
        f"  {u.number}  {u.runtime}  {', '.join(u.nodes)}{'  (nothing to run)' if u.idle else ''}"
        for u in plan.units
    ]
    stored = [each for each in plan.boundaries if each.stored]
    lines += ["", "between them:"] if stored else []
    for each in stored:
        to = f"to sub-flow {', '.join(map(str, each.ends))}" if each.ends else "for others to read"
        what = "static value" if each.label.is_static else "stream"
        lines.append(f"  {what} {each.stream}: from sub-flow {each.start} {to}")
    if plan.joins:
        lines += ["", "joins that are missing:"]
        lines += [f"  {join.violation()}" for join in plan.joins]
    return "\n".join(lines)


def _count(plan: Plan) -> str:
    counts = {
        "node": len(plan.composition),
        "sub-flow": len(plan.subflows),
        "unit": len(plan.units),
    }
    return ", ".join(f"{n} {what}{'' if n == 1 else 's'}" for what, n in counts.items())


def _cardinality(plan: Plan, name: str) -> str:
    if name in plan.cardinalities:
        declared = plan.composition[name].cardinality is not None
        return f"{plan.cardinalities[name]}{' (declared)' if declared else ''}"
    return "once" if plan.labels[name].is_static else ""


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [
        "  ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return [lines[0], "  ".join("─" * width for width in widths), *lines[1:]]


def as_mermaid(plan: Plan) -> str:
    """Sub-flows as frames, nodes inside, labels on the edges; static values are dotted."""
    flow = plan.composition
    lines = ["flowchart LR"]
    for each in plan.subflows:
        title = each.runtime if each.label.is_static else f"{each.runtime}, {each.label}"
        lines.append(f'  subgraph p{each.number}["{each.number}: {title}"]')
        for name in each.nodes:
            opening, closing = _SHAPES.get(flow[name].kind, ("[", "]"))
            text = f"{name}<br/><small>{flow[name].kind}</small>"
            lines.append(f'    {_id(name)}{opening}"{text}"{closing}')
        lines.append("  end")
    for name, node in flow.nodes.items():
        for port in node.inputs:
            label = plan.labels[port.node]
            arrow = "-.->" if label.is_static else "-->"
            shown = port.target if port.output is not None else str(label)
            lines.append(f'  {_id(port.node)} {arrow}|"{shown}"| {_id(name)}')
    lines += [f"  {_id(join.node)}:::missing" for join in plan.joins]
    if plan.joins:
        lines.append("  classDef missing stroke:#c00,stroke-width:3px")
    return "\n".join(lines)


def _id(name: str) -> str:
    # Words of Mermaid's own, such as "end", are no ids: every id gets a prefix.
    return "n_" + "".join(c if c.isalnum() and c.isascii() else f"_{ord(c):x}_" for c in name)


def as_json(plan: Plan) -> dict[str, Any]:
    """Everything, with names and numbers only."""
    number = {name: each.number for each in plan.subflows for name in each.nodes}
    flow = plan.composition
    return {
        "flow": flow.name,
        "deployable": plan.deployable,
        "nodes": [
            {
                "node": name,
                "kind": node.kind,
                "from": {port.name: port.target for port in node.inputs},
                "label": str(plan.labels[name]),
                "static": plan.labels[name].is_static,
                "promoted": name in plan.promoted,
                "cardinality": str(c) if (c := plan.cardinalities.get(name)) else None,
                "runtime": plan.runtimes[name],
                "subflow": number[name],
            }
            for name, node in flow.nodes.items()
        ],
        "subflows": [
            {
                "number": each.number,
                "label": str(each.label),
                "runtime": each.runtime,
                "nodes": list(each.nodes),
            }
            for each in plan.subflows
        ],
        "units": [
            {
                "number": u.number,
                "runtime": u.runtime,
                "subflows": list(u.subflows),
                "nodes": list(u.nodes),
                "idle": u.idle,
            }
            for u in plan.units
        ],
        "streams": [
            {
                "stream": each.stream,
                "node": each.node,
                "output": each.output,
                "label": str(each.label),
                "static": each.label.is_static,
                "from": each.start,
                "to": list(each.ends),
                "stored": each.stored,
            }
            for each in plan.boundaries
        ],
        "joins": [
            {
                "node": join.node,
                "ports": {port: str(label) for port, label in join.ports.items()},
                "choices": dict(join.choices),
            }
            for join in plan.joins
        ],
    }
