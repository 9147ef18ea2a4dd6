"""What a form needs to know of each kind of node, and flow files as forms change them.

All of it is read from the kinds themselves. A form's document is what a flow file says, right or
wrong: one can write down what is still to be completed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headwater.compose.addresses import Call, Target, Url
from headwater.compose.kinds import KINDS
from headwater.compose.node import keys
from headwater.compose.schema import summary
from headwater.compose.steps import Steps
from headwater.compose.structures import Alerts, Cardinalities, Ports, Schemas
from headwater.compose.types.bindings import Bindings
from headwater.compose.values import (
    Choice,
    Duration,
    Either,
    Flag,
    Names,
    Number,
    Pairs,
    Plain,
    Text,
    Value,
    Whole,
)
from headwater.compose.violations import CompositionError, Violation
from headwater.compose.windows import Windows
from headwater.compose.writing import node_yaml
from headwater.compose.yaml_text import dump, load

if TYPE_CHECKING:
    from headwater.compose.node import Key, Node

TYPES: dict[type[Value], str] = {
    Text: "text",
    Whole: "integer",
    Number: "number",
    Flag: "boolean",
    Choice: "choice",
    Duration: "duration",
    Names: "names",
    Pairs: "pairs",
    Plain: "any",
    Either: "either",
    Ports: "inputs",
    Windows: "window",
    Alerts: "alert",
    Schemas: "schema",
    Cardinalities: "cardinality",
    Call: "function",
    Target: "target",
    Url: "url",
    Steps: "steps",
    Bindings: "properties",
}
"""The word of a form for each type of values; SQL is a text with a word of its own."""

_EXAMPLES: dict[str, tuple[str, dict[str, Any]]] = {
    "source": ("radar", {"stream": "radar", "schema": "scan bigint, at timestamp, dbz double"}),
    "static": ("level", {"value": 35}),
    "filter": ("strong", {"from": "radar", "where": "dbz > 35"}),
    "map": ("power", {"from": "radar", "columns": {"mm": "pow(dbz / 10, 2)"}, "keep": "scan"}),
    "function": (
        "storms",
        {"from": "radar", "call": "weather:find_storms", "schema": "scan bigint, cells int"},
    ),
    "service": (
        "lookup",
        {"from": "radar", "target": "https://example.org/find", "response": "cells int"},
    ),
    "aggregate": (
        "rate",
        {"from": "radar", "window": {"count": 10}, "columns": {"mean": "avg(dbz)"}},
    ),
    "merge": ("both", {"from": ["strong", "weak"]}),
    "join": ("pairs", {"from": ["strong", "weak"], "policy": "window", "within": "10 seconds"}),
    "match": (
        "rising",
        {
            "from": "radar",
            "pattern": "low high",
            "define": {"low": "dbz < 20", "high": "dbz > 35"},
            "measures": {"from_scan": "low.scan", "to_scan": "high.scan"},
        },
    ),
    "sql": ("loud", {"from": "radar", "query": "select scan, dbz from radar where dbz > 35"}),
    "job": ("forecast", {"from": "strong", "run": "python forecast.py"}),
    "sink": ("alerts", {"from": "strong", "stream": "alerts"}),
}
"""A small node of each kind with its name."""


def kinds() -> list[dict[str, Any]]:
    """Each kind: what it makes, what it reads, its keys with types and docs, an example.

    >>> [kind["kind"] for kind in kinds()][:3]
    ['source', 'static', 'filter']
    >>> next(key for key in kinds()[2]["keys"] if key["key"] == "where")
    {'key': 'where', 'type': 'sql', 'doc': 'the condition', 'required': True}
    """
    return [_kind(kind) for kind in KINDS.values()]


def examples() -> dict[str, str]:
    """A small node of each kind, as a flow file has it.

    >>> print(examples()["filter"])
    strong: {filter: {from: radar, where: dbz > 35}}
    """
    return {
        kind: "\n".join(line[2:] for line in node_yaml(name, {kind: given}).splitlines())
        for kind, (name, given) in _EXAMPLES.items()
    }


def _kind(kind: type[Node]) -> dict[str, Any]:
    least, most = kind.ports
    # What a source reads is static, and comes before its stream.
    inputs = "none" if kind.kind == "source" else "one" if most == 1 else "many"
    name, example = _EXAMPLES[kind.kind]
    return {
        "kind": kind.kind,
        "doc": summary(kind),
        "inputs": inputs,
        "least": least,
        "most": most,
        "statics": kind.statics,
        "outputs": list(kind.outputs),
        "runtimes": list(kind.runtimes),
        "required": [key.name for key in keys(kind) if key.required],
        "keys": [_key(kind, key) for key in keys(kind)],
        "example": {name: {kind.kind: example}},
    }


def _key(kind: type[Node], key: Key) -> dict[str, Any]:
    told = {"key": key.name, **_type(key.type), "doc": key.doc, "required": key.required}
    if not key.required and isinstance(key.default, str | int | float):
        told["default"] = key.default
    if key.name == "runtime":
        able = (*kind.runtimes, *(("static",) if kind.promotable else ()))
        told["choices"] = list(able)
    return told


def _type(value: Value) -> dict[str, Any]:
    told: dict[str, Any] = {"type": TYPES[type(value)]}
    match value:
        case Text(what="SQL"):
            told["type"] = "sql"
        case Text(what=what, example=example) if what != "text":
            told["placeholder"] = example or what
        case Choice(options=options):
            told["choices"] = list(options)
        case Whole(least=least):
            told["minimum"] = least
        case Duration(seconds=True):
            told["seconds"] = True
        case Pairs(of=of) | Names(of=of):
            told["of"] = _type(of)["type"]
        case Either(types=types, what=what):
            told["placeholder"] = what
            told["of"] = [_type(each)["type"] for each in types]
        case Windows(measures=measures, batches=batches):
            told["choices"] = list(measures)
            told["slides"] = not batches
    return told


def document(text: str) -> dict[str, Any] | None:
    """What a flow file says, `{flow, nodes}`, even if rules are broken; None if it has no nodes.

    Raises `CompositionError` where the text is no YAML.

    >>> document("flow: f\\nnodes: {a: {filter: {}}}")
    {'flow': 'f', 'nodes': {'a': {'filter': {}}}}
    """
    told = load(text, None).value
    if not isinstance(told, Mapping) or not isinstance(told.get("nodes") or {}, Mapping):
        return None
    if "flow" not in told and "nodes" not in told:
        return None
    return {"flow": told.get("flow"), "nodes": dict(told.get("nodes") or {})}


def written(document: Mapping[str, Any]) -> str:
    """The flow file of a document, whatever rules it breaks; a node a line where it fits.

    >>> print(written({"flow": "f", "nodes": {"a": {"filter": {"from": "b"}}}}), end="")
    flow: f
    nodes:
      a: {filter: {from: b}}
    """
    flow, nodes = document.get("flow"), document.get("nodes")
    if not isinstance(nodes, Mapping):
        raise CompositionError([Violation("shape", "nodes is {name: {kind: {…}}}")])
    width = max((len(str(name)) for name in nodes), default=0) + 1
    head = "nodes:\n" if nodes else "nodes: {}\n"
    lines = [node_yaml(str(name), node, width) for name, node in nodes.items()]
    return "".join([dump({"flow": flow}, flow=False), head, *lines])
