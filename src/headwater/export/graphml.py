"""GraphML: records point to the results that they reached; columns are typed data of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.export.names import COLUMN
from headwater.export.text import characters, joined, optional, xml_text, xml_texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from headwater.export.graph import Attribute, Entities, Graph, Output, Part

_TYPES = {"xsd:long": "long", "xsd:double": "double", "xsd:boolean": "boolean"}
"""All others are text."""
_CONSTANTS = ("kind", "flow", "sink", "source")
_NAMESPACE = "http://graphml.graphdrawing.org/xmlns"


def write(graph: Graph) -> Iterator[Output]:
    """The graph as a GraphML document."""
    parts = list(graph.parts())
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="{_NAMESPACE}">\n'.encode()
    for name in _CONSTANTS:
        yield _key(name, name, "string").encode()
    for number, part in enumerate(parts):
        for place, attribute in enumerate(part.attributes):
            kind = _TYPES.get(attribute.type, "string")
            yield _key(f"a{number}.{place}", _called(attribute, part), kind).encode()
    yield b'  <graph id="headwater" edgedefault="directed">\n'
    for some in graph.entities():
        yield characters(_node(some, parts.index(some.part)))
    for came in graph.derivations():
        source, target = xml_texts(came.causes), xml_texts(came.effects)
        yield characters(joined('    <edge source="', source, '" target="', target, '"/>\n'))
    yield b"  </graph>\n</graphml>\n"


def _key(id: str, name: str, kind: str) -> str:
    said = f'attr.name="{xml_text(name)}" attr.type="{kind}"'
    return f'  <key id="{id}" for="node" {said}/>\n'


def _called(attribute: Attribute, part: Part) -> str:
    """The name of an attribute; an own column with a name of Headwater's is prefixed."""
    fixed = (*_CONSTANTS, "event_time", "job")
    clash = attribute.prefix == COLUMN and attribute.name in fixed
    return f"{part.name}.{attribute.name}" if clash else attribute.name


def _node(some: Entities, number: int) -> pa.Array:
    said = [
        optional(f'<data key="a{number}.{place}">', _text(attribute.type, texts), "</data>")
        for place, (attribute, texts) in enumerate(
            zip(some.part.attributes, some.texts, strict=True)
        )
    ]
    same = _constants(some.part)
    return joined('    <node id="', xml_texts(some.names), f'">{same}', *said, "</node>\n")


def _constants(part: Part) -> str:
    known = {"kind": part.kind, **part.constants}
    return "".join(f'<data key="{key}">{xml_text(value)}</data>' for key, value in known.items())


def _text(type_: str, texts: pa.Array) -> pa.Array:
    return xml_texts(texts) if type_ == "xsd:string" else texts
