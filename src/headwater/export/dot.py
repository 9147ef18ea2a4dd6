"""DOT, Graphviz's language: records point to the results that they reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from headwater.export.text import characters, joined, optional, replaced

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from headwater.export.graph import Entities, Graph, Output

_SHAPES = {"result": "box", "record": "ellipse", "entity": "note"}


def write(graph: Graph) -> Iterator[Output]:
    """The graph as Graphviz draws it; a node's columns are shown when it is pointed at."""
    yield b'digraph headwater {\n  rankdir=LR;\n  node [fontname="sans-serif"];\n'
    for some in graph.entities():
        yield characters(_node(some))
    for came in graph.derivations():
        yield characters(joined('  "', came.causes, '" -> "', came.effects, '";\n'))
    yield b"}\n"


def _node(some: Entities) -> pa.Array:
    part = some.part
    label: pa.Array = some.names
    if part.name is not None:
        label = joined(f"{part.name} ", pc.replace_substring_regex(some.names, "^.*/", ""))
    said = [
        optional(f"{_text(attribute.name)}=", replaced(texts, r'[\x00\n\r"\\]', _text), "\\n")
        for attribute, texts in zip(part.attributes, some.texts, strict=True)
    ]
    return joined(
        *('  "', some.names, '" [label="', label, f'", shape={_SHAPES[part.kind]}'),
        *(', tooltip="', *said, '"];\n'),
    )


def _text(text: str) -> str:
    r"""Text as it stands between the quotes of DOT.

    >>> _text('a "b"\n')
    'a \\"b\\"\\n'
    """
    for odd, spelled in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", ""), ("\0", "\ufffd")):
        text = text.replace(odd, spelled)
    return text
