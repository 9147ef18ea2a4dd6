"""A flow as text and as a picture: the model that `explain()` and `to_mermaid()` print."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.flow.nodes import Node, Sink

if TYPE_CHECKING:
    from collections.abc import Iterable


_ALIAS = re.compile(r"`__hw_(left|right)_[^`]+`\.")
"""The aliases that a join gives its sides are nobody's business but Spark's."""


ONCE = ("source", "static", "service")
"""Steps that work once for all sinks behind them."""


@dataclass(frozen=True, slots=True)
class RenderedStep:
    """One step of a flow as people see it."""

    step: str
    kind: str
    description: str
    site: str
    inputs: tuple[str, ...]
    sinks: tuple[str, ...]
    """The sinks downstream: Spark runs the step once for each."""


def model(sinks: Iterable[Node]) -> list[RenderedStep]:
    """The steps above some nodes, each once, inputs first."""
    ends = list(sinks)
    downstream: dict[str, list[str]] = {}
    order: dict[str, Node] = {}
    for end in ends:
        for node in end.upstream():
            order.setdefault(node.step, node)
            if isinstance(end, Sink):
                downstream.setdefault(node.step, []).append(end.step)
    return [
        RenderedStep(
            step=node.step,
            kind=node.kind,
            description=_ALIAS.sub(r"\1.", node.describe()),
            site=node.site,
            inputs=tuple(above.step for above in node.inputs),
            sinks=tuple(downstream.get(node.step, ())),
        )
        for node in order.values()
    ]


def as_text(title: str, steps: list[RenderedStep]) -> str:
    """One line for each step: name, inputs, what it does, where it was written."""
    lines = [title]
    width = max((len(s.step) for s in steps), default=0)
    for s in steps:
        arrow = f" <- {', '.join(s.inputs)}" if s.inputs else ""
        what = f": {s.description}" if s.description else ""
        # A source is read once for all sinks, a service called once; every other shared step is
        # run for each of them.
        again = f"  (run {len(s.sinks)} times, once for each of {', '.join(s.sinks)})"
        shared = again if len(s.sinks) > 1 and s.kind not in ONCE else ""
        lines.append(f"  {s.step:<{width}}  {s.kind}{arrow}{what}  [{s.site}]{shared}")
    return "\n".join(lines)


_SHAPES = {"source": ("[(", ")]"), "static": ("[(", ")]"), "sink": ("([", "])")}


def as_mermaid(steps: list[RenderedStep]) -> str:
    """The flow as a Mermaid flowchart."""
    lines = ["flowchart LR"]
    for s in steps:
        opening, closing = _SHAPES.get(s.kind, ("[", "]"))
        label = s.step if not s.description else f"{s.step}<br/><small>{s.description}</small>"
        escaped = label.replace('"', "#quot;")
        lines.append(f'  {_mermaid_id(s.step)}{opening}"{escaped}"{closing}')
    for s in steps:
        lines.extend(f"  {_mermaid_id(above)} --> {_mermaid_id(s.step)}" for above in s.inputs)
    return "\n".join(lines)


def _mermaid_id(step: str) -> str:
    # "end" is a word of Mermaid's own, so every id gets a prefix.
    return "s_" + "".join(c if c.isalnum() else f"_{ord(c):x}_" for c in step)
