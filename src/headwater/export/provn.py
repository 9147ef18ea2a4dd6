"""PROV-N: W3C's notation for people, a statement a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headwater import __version__
from headwater.export.graph import AGENT, TYPES
from headwater.export.names import all_escaped, escaped
from headwater.export.text import characters, joined, optional, replaced
from headwater.export.values import moments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.export.graph import Attribute, Entities, Graph, Output, Run


def write(graph: Graph) -> Iterator[Output]:
    """The graph as a PROV-N document."""
    yield b"document\n"
    if graph.default is not None:
        yield f"  default <{graph.default}>\n".encode()
    for prefix, namespace in graph.namespaces.items():
        yield f"  prefix {prefix} <{namespace}>\n".encode()
    yield b"\n"
    runs = graph.runs()
    yield "".join(map(_activity, runs)).encode()
    if runs:
        said = f"prov:type='prov:SoftwareAgent', hw:version={_quoted(__version__)}"
        yield f"  agent({AGENT}, [{said}])\n".encode()
    for plan, flow in {escaped(run.plan): run.flow for run in runs}.items():
        yield f"  entity({plan}, [prov:type='prov:Plan', hw:flow={_quoted(flow)}])\n".encode()
    for some in graph.entities():
        yield characters(_described(some))
    for run in runs:
        said = f"{escaped(run.name)}, {AGENT}, {escaped(run.plan)}"
        yield f"  wasAssociatedWith({said})\n".encode()
    for made in graph.generations():
        names = all_escaped(made.entities), ", ", all_escaped(made.runs)
        yield characters(joined("  wasGeneratedBy(", *names, ", ", made.times, ")\n"))
    for came in graph.derivations():
        names = all_escaped(came.effects), ", ", all_escaped(came.causes)
        end = ")\n" if came.runs is None else joined(", ", all_escaped(came.runs), ", -, -)\n")
        yield characters(joined("  wasDerivedFrom(", *names, end))
    yield b"endDocument\n"


def _activity(run: Run) -> str:
    end = moments(pa.array([run.last])).to_pylist()[0] if run.finished else "-"
    said = f"hw:flow={_quoted(run.flow)}, hw:capture={_quoted(run.capture)}"
    return f"  activity({escaped(run.name)}, -, {end}, [{said}])\n"


def _described(some: Entities) -> pa.Array:
    part = some.part
    constants = [f", hw:{key}={_quoted(value)}" for key, value in part.constants.items()]
    head = f", [prov:type='hw:{TYPES[part.kind]}'{''.join(constants)}"
    said = [_attribute(*pair) for pair in zip(part.attributes, some.texts, strict=True)]
    return joined("  entity(", all_escaped(some.names), head, *said, "])\n")


def _attribute(attribute: Attribute, texts: pa.Array) -> pa.Array:
    key = escaped(attribute.key)
    if attribute.type == "xsd:string":
        texts = replaced(texts, r'[\n\r"\\]', _text)
        return optional(f', {key}="', texts, '"')
    return optional(f', {key}="', texts, f'" %% {attribute.type}')


def _quoted(text: str) -> str:
    return f'"{_text(text)}"'


def _text(text: str) -> str:
    r"""Text as it stands between the quotes of PROV-N.

    >>> _text('a "b"\n')
    'a \\"b\\"\\n'
    """
    for odd, spelled in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(odd, spelled)
    return text
