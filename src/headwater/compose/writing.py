"""Compositions to flow files: YAML with a node a line, and JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from headwater.compose.yaml_text import dump

if TYPE_CHECKING:
    from headwater.compose.composition import Composition

_WIDTH = 120
"""A node longer than this is written over several lines."""


def to_yaml(composition: Composition) -> str:
    """The flow file in YAML."""
    told = composition.to_dict()
    head = "nodes:\n" if told["nodes"] else "nodes: {}\n"
    lines = [dump({"flow": told["flow"]}, flow=False), head]
    width = max((len(name) for name in told["nodes"]), default=0) + 1
    for name, node in told["nodes"].items():
        lines.append(node_yaml(name, node, width))
    return "".join(lines)


def node_yaml(name: str, node: dict[str, Any], width: int = 0) -> str:
    """One node, on a line of its own where it fits."""
    inline = dump(node, width=10**9, flow=True).rstrip("\n")
    if "\n" not in inline and len(inline) + width <= _WIDTH:
        quoted = dump(name).strip()  # a node may be called `null`
        return f"  {f'{quoted}:':<{width}} {inline}\n"
    block = dump({name: node}, width=100, flow=None)
    return "".join(f"  {line}\n" if line else "\n" for line in block.rstrip("\n").split("\n"))


def to_json(composition: Composition) -> str:
    """The flow file in JSON."""
    return json.dumps(composition.to_dict(), ensure_ascii=False, indent=2) + "\n"
