"""An export from beginning to end: what is asked for is put aside by ids, then written out."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.errors import HeadwaterError
from headwater.export import dot, files, graphml, openlineage, provjson, provn
from headwater.export.answers import AnswerGraph
from headwater.export.choosing import choose
from headwater.export.flows import FlowGraph
from headwater.export.spool import Spool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa

    from headwater.export.choosing import Asked
    from headwater.export.files import Target
    from headwater.export.graph import Graph, Output
    from headwater.query.edges import Edges

FORMATS: Mapping[str, Callable[[Graph], Iterator[Output]]] = {
    "prov-json": provjson.write,
    "prov-n": provn.write,
    "dot": dot.write,
    "graphml": graphml.write,
    "openlineage": openlineage.write,
}
"""By name, what writes a format: a graph in, pieces of bytes out."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export holds: entities (results, records and others), edges between them, bytes."""

    format: str
    entities: int
    edges: int
    bytes: int


def export(
    edges: Edges, asked: Asked, to: Target, format: str, answer: Callable[[], pa.Table]
) -> Exported:
    """Write what is asked for; `answer` gives that of a workflow's entity."""
    if format not in FORMATS:
        raise HeadwaterError(f"no format {format!r}; choose one of: {', '.join(FORMATS)}")
    if format == "openlineage" and asked.entity is not None:
        raise HeadwaterError(
            "openlineage tells of the runs of flows, and the answer of an entity has none; "
            "choose another format"
        )
    path = files.place(to)
    with files.workspace(path) as folder, closing(Spool(folder)) as spool:
        graph: Graph
        if asked.entity is not None:
            graph = AnswerGraph(asked.entity, answer(), asked.direction)
        else:
            choose(edges, asked, spool)
            graph = FlowGraph(edges, spool, columns=asked.columns)
        written = 0
        with files.opened(to, path, folder) as file:
            for piece in FORMATS[format](graph):
                file.write(piece)
                written += len(piece)
        return Exported(format, *graph.totals(), written)
