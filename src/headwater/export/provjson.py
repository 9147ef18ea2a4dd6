"""PROV-JSON: one object, a section after the other, a statement a line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater import __version__
from headwater.export.graph import AGENT, TYPES
from headwater.export.text import characters, joined, json_text, json_texts, optional
from headwater.export.values import moments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headwater.export.graph import Attribute, Entities, Graph, Output, Run

Said = dict[str, dict[str, object]]
"""Statements by name: their attributes."""


def write(graph: Graph) -> Iterator[Output]:
    """The graph as a PROV-JSON document."""
    namespaces = dict(graph.namespaces)
    if graph.default is not None:
        namespaces["default"] = graph.default
    yield f'{{\n"prefix": {json.dumps(namespaces)}'.encode()
    runs = graph.runs()
    plans: Said = {}
    for run in runs:
        plans[run.plan] = {"prov:type": _name("prov:Plan"), "hw:flow": run.flow}
    yield from _section("activity", [_said({run.name: _activity(run) for run in runs})])
    yield from _section("agent", [_said({AGENT: _agent()} if runs else {})])
    yield from _section("entity", _entities(graph, plans))
    associations: Said = {
        f"_:a{number}": {"prov:activity": run.name, "prov:agent": AGENT, "prov:plan": run.plan}
        for number, run in enumerate(runs, 1)
    }
    yield from _section("wasAssociatedWith", [_said(associations)])
    yield from _section("wasGeneratedBy", _generations(graph))
    yield from _section("wasDerivedFrom", _derivations(graph))
    yield b"\n}\n"


def _section(name: str, statements: Iterable[pa.Array]) -> Iterator[Output]:
    """A section with the statements; none where there are none."""
    opened = False
    for some in statements:
        text = characters(some)
        if not len(text):
            continue
        if opened:
            yield text
        else:
            yield f',\n"{name}": {{'.encode()
            # Each statement brings the comma that parts it from the one before.
            yield text[1:]
            opened = True
    if opened:
        yield b"\n}"


def _said(statements: Said) -> pa.Array:
    lines = [f',\n  "{key}": {json.dumps(said)}' for key, said in statements.items()]
    return pa.array(lines, pa.string())


def _name(name: str) -> dict[str, str]:
    return {"$": name, "type": "xsd:QName"}


def _activity(run: Run) -> dict[str, object]:
    said: dict[str, object] = {"hw:flow": run.flow, "hw:capture": run.capture}
    if run.finished:
        said["prov:endTime"] = moments(pa.array([run.last])).to_pylist()[0]
    return said


def _agent() -> dict[str, object]:
    return {"prov:type": _name("prov:SoftwareAgent"), "hw:version": __version__}


def _entities(graph: Graph, plans: Said) -> Iterator[pa.Array]:
    yield _said(plans)
    for some in graph.entities():
        yield _described(some)


def _described(some: Entities) -> pa.Array:
    part = some.part
    constants = [f', "hw:{key}": "{json_text(value)}"' for key, value in part.constants.items()]
    type_ = json.dumps(_name(f"hw:{TYPES[part.kind]}"))
    head = f'": {{"prov:type": {type_}{"".join(constants)}'
    said = [_attribute(*pair) for pair in zip(part.attributes, some.texts, strict=True)]
    return joined(',\n  "', some.names, head, *said, "}")


def _attribute(attribute: Attribute, texts: pa.Array) -> pa.Array:
    key = json_text(attribute.key)
    if attribute.type == "xsd:string":
        return optional(f', "{key}": "', json_texts(texts), '"')
    return optional(f', "{key}": {{"$": "', texts, f'", "type": "{attribute.type}"}}')


def _generations(graph: Graph) -> Iterator[pa.Array]:
    before = 0
    for some in graph.generations():
        yield joined(
            *(',\n  "_:g', _numbers(before, len(some.entities))),
            *('": {"prov:entity": "', some.entities),
            *('", "prov:activity": "', some.runs),
            *('", "prov:time": "', some.times, '"}'),
        )
        before += len(some.entities)


def _derivations(graph: Graph) -> Iterator[pa.Array]:
    before = 0
    for some in graph.derivations():
        activity = "" if some.runs is None else joined('", "prov:activity": "', some.runs)
        yield joined(
            *(',\n  "_:d', _numbers(before, len(some.effects))),
            *('": {"prov:generatedEntity": "', some.effects),
            *('", "prov:usedEntity": "', some.causes),
            *(activity, '"}'),
        )
        before += len(some.effects)


def _numbers(before: int, count: int) -> pa.Array:
    """The numbers that statements without a name of their own go by."""
    return pa.array(np.arange(before + 1, before + count + 1)).cast(pa.string())
