"""DOT and GraphML: the same nodes and edges, with their columns."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings

from headwater.export import FORMATS
from headwater.query import Store
from tests.export.drawing import NAMES, TEXTS, drawn
from tests.export.reading import derivations, document, entities, exported

XML = "{http://graphml.graphdrawing.org/xmlns}"


def graphml(text: bytes) -> tuple[dict[str, dict[str, Any]], list[tuple[str, str]]]:
    """Nodes with their data, by the declared names and types, and edges."""
    root = ET.fromstring(text)
    keys = {key.get("id"): key for key in root.iter(f"{XML}key")}
    nodes: dict[str, dict[str, Any]] = {}
    for node in root.iter(f"{XML}node"):
        data = {}
        for said in node:
            key = keys[said.get("key")]
            parse = {"long": int, "double": float, "boolean": "true".__eq__, "string": str}
            data[str(key.get("attr.name"))] = parse[str(key.get("attr.type"))](said.text or "")
        assert len(data) == len(node), "no two have one name"
        nodes[str(node.get("id"))] = data
    edges = [(str(e.get("source")), str(e.get("target"))) for e in root.iter(f"{XML}edge")]
    return nodes, edges


def test_graphml_has_all_nodes_and_edges(store: Store) -> None:
    nodes, edges = graphml(exported(store, "graphml"))
    read = document(exported(store))
    assert nodes.keys() == entities(read).keys()
    assert edges == [(cause, effect) for effect, cause, _ in derivations(read)]


def test_graphml_has_typed_columns(store: Store) -> None:
    nodes, _ = graphml(exported(store, "graphml"))
    assert nodes["hw:traffic/counted/-8"] == {
        "kind": "result",
        "flow": "traffic",
        "sink": "counted",
        "event_time": "2024-05-01T00:00:20Z",
        "window.start": "2024-05-01T00:00:10Z",
        "window.end": "2024-05-01T00:00:20Z",
        "n": 3,
        "note": "<-8> & 'more'",
    }
    odd = nodes["hw:traffic/reports/1"]
    assert odd["note"] == 'a "b" \\ c\nd\te <&> ü 漢 \U0001f600'
    assert (odd["ratio"], odd["ok"], odd["an odd: name"]) == (0.1, True, "")
    assert odd["event_time"] == "2024-05-01T00:00:00Z"
    assert odd["reports.event_time"] == "not one", "an own column of that name is another thing"
    assert nodes["hw:traffic/reports/2"]["note"] == "\ufffd odd", "XML can't hold all characters"
    assert nodes["hw:traffic/reports/3"]["ratio"] == float("inf")


@settings(max_examples=100, deadline=None)
@given(texts=TEXTS, column=NAMES)
def test_graphml_of_any_text_and_any_name(texts: list[str], column: str) -> None:
    nodes, edges = graphml(b"".join(FORMATS["graphml"](drawn(texts, column))))
    assert len(nodes) == len(texts)
    assert len(edges) == max(0, len(texts) - 1)
    for text, data in zip(texts, nodes.values(), strict=True):
        (own,) = (value for name, value in data.items() if name not in ("kind", "flow", "source"))
        assert own == re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "\ufffd", text)


QUOTED = r'"((?:[^"\\]|\\.)*)"'
NODE = re.compile(rf"  {QUOTED} \[label={QUOTED}, shape=(\w+), tooltip={QUOTED}\];")
EDGE = re.compile(rf"  {QUOTED} -> {QUOTED};")


def dot(text: bytes) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Nodes (name, label, shape, tooltip) and edges; each line must be one of them."""
    head, *lines, end = text.decode().removesuffix("\n").split("\n")
    assert (head, end) == ("digraph headwater {", "}")
    nodes, edges = [], []
    for line in lines[2:]:
        if found := NODE.fullmatch(line):
            nodes.append(found.groups())
        else:
            found = EDGE.fullmatch(line)
            assert found, line
            edges.append(found.groups())
    return nodes, edges


def test_dot_has_all_nodes_and_edges(store: Store) -> None:
    nodes, edges = dot(exported(store, "dot"))
    read = document(exported(store))
    assert [name for name, *_ in nodes] == list(entities(read))
    assert edges == [(cause, effect) for effect, cause, _ in derivations(read)]
    shown = {name: rest for name, *rest in nodes}
    assert shown["hw:traffic/late.ones/7"] == [
        "late.ones 7",
        "box",
        r"event_time=2024-05-01T00:00:11Z\ntid=7\nnote=<7> & 'more'\n",
    ]
    assert shown["hw:traffic/calm/1"][:2] == ["calm 1", "ellipse"]
    assert r"note=a \"b\" \\ c\nd" in shown["hw:traffic/reports/1"][2]


@settings(max_examples=100, deadline=None)
@given(texts=TEXTS, column=NAMES)
def test_dot_of_any_text_and_any_name(texts: list[str], column: str) -> None:
    nodes, edges = dot(b"".join(FORMATS["dot"](drawn(texts, column))))
    assert len(nodes) == len(texts)
    assert len(edges) == max(0, len(texts) - 1)


@pytest.mark.parametrize("format", ["dot", "graphml"])
def test_an_empty_graph(store: Store, format: str) -> None:
    text = exported(store, format, since="2030-01-01")
    assert (dot(text) if format == "dot" else graphml(text)) in (([], []), ({}, []))
