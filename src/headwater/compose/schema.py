"""The JSON schema of flow files, made from the kinds, for editors to complete and to check with.

`python -m headwater.compose.schema` prints it; with the path of a file, it is written there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from headwater.compose.kinds import KINDS
from headwater.compose.node import Node, keys
from headwater.compose.structures import NAME

FILE = Path(__file__).with_name("schema.json")
"""Where the schema is in the package."""


def schema() -> dict[str, Any]:
    """The schema as a value.

    >>> sorted(schema()["properties"])
    ['flow', 'nodes']
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Headwater flow file",
        "description": "A flow: named nodes, each of one kind, with what it reads under from.",
        "type": "object",
        "required": ["flow", "nodes"],
        "additionalProperties": False,
        "properties": {
            "flow": {"type": "string", "pattern": NAME, "description": "the flow's name"},
            "nodes": {
                "type": "object",
                "propertyNames": {"pattern": NAME},
                "additionalProperties": {"$ref": "#/$defs/node"},
                "description": "the nodes by name",
            },
        },
        "$defs": {
            "node": {
                "type": "object",
                "minProperties": 1,
                "maxProperties": 1,
                "additionalProperties": False,
                "properties": {name: {"$ref": f"#/$defs/{name}"} for name in KINDS},
            },
            **{name: _kind(kind) for name, kind in KINDS.items()},
        },
    }


def _kind(kind: type[Node]) -> dict[str, Any]:
    properties = {}
    for key in keys(kind):
        own = {"description": key.doc, **key.type.schema()}
        if not key.required and isinstance(key.default, str | int | float):
            own["default"] = key.default
        properties[key.name] = own
    return {
        "description": summary(kind),
        "type": "object",
        "required": [key.name for key in keys(kind) if key.required],
        "additionalProperties": False,
        "properties": properties,
    }


def summary(kind: type[Node]) -> str:
    """The first line of a kind's docstring, which is what it makes."""
    return (kind.__doc__ or "").strip().splitlines()[0]


def text() -> str:
    """The schema as it is in the package's file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> None:
    """Print the schema, or write it where it belongs."""
    if not arguments:
        print(text(), end="")
    for argument in arguments:
        Path(argument).write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
