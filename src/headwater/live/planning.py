"""What a live graph of a flow needs, found before anything is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from headwater.errors import RunError
from headwater.flow.nodes import Source
from headwater.live.files import flow_folder
from headwater.live.graph import EXPIRIES, Expiry, LiveGraph
from headwater.live.reading import times_in_files
from headwater.lowering.outputs import Live
from headwater.store.catalog import LAZY
from headwater.times import micros

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import duckdb
    import pyarrow as pa

    from headwater.capture.choosing import Choice
    from headwater.flow.flow import Flow
    from headwater.flow.reach import Reach
    from headwater.live.graph import Ints
    from headwater.store.batch import Resolve
    from headwater.store.embedded import EmbeddedWriter


@dataclass(frozen=True, slots=True)
class Plan:
    """A live graph to be: how far each source's records reach, and the rule that labels go by."""

    expiry: Expiry
    reaches: dict[str, Reach]
    lazy: bool
    nodes: Mapping[str, Any]
    """The flow's steps, by name."""
    steps: tuple[str, ...] = ()
    """Those whose rows are in the graph as well."""
    in_files: tuple[Source, ...] = ()
    """The sources whose records' times are read from their files, beside the flow's plan."""

    @property
    def bounded(self) -> frozenset[str]:
        """The sources and steps whose rows are past at some watermark."""
        return frozenset(name for name, r in self.reaches.items() if r.unbounded is None)

    @property
    def told(self) -> Live:
        """What the flow's plan has to tell the graph, batch by batch."""
        sessions = {step for name in self.bounded for step in self.reaches[name].sessions}
        return Live(
            self.bounded.difference(self.steps, (node.name for node in self.in_files)),
            tuple(self.nodes[step] for step in sorted(sessions)),
            tuple(self.nodes[step] for step in self.steps),
        )

    @property
    def in_short(self) -> str:
        """How a store tells a flow with this graph from others."""
        return f", live ({', '.join([self.expiry, *self.steps])})"

    def described(self) -> dict[str, Any]:
        """What the store is told."""
        return {
            "expiry": self.expiry,
            "reach": {name: reach.to_json() for name, reach in self.reaches.items()},
        }


def planned(
    flow: Flow,
    chosen: Mapping[str, Choice],
    expiry: str | None,
    *,
    steps: bool = False,
    by_driver: bool = True,
) -> Plan:
    """The plan of a live graph, refused where there can be none.

    Only where the driver keeps it, times are read from files `by_driver`.
    """
    rule = next((e for e in EXPIRIES if e == (expiry or "tight")), None)
    if rule is None:
        raise RunError(f"expiry={expiry!r} is not one of {', '.join(EXPIRIES)}")
    traced = [sink for name, sink in flow.sinks.items() if chosen[name].mode != "none"]
    if not traced:
        raise RunError("live=True needs provenance: capture='none' has no edges to keep a graph of")
    for name, choice in chosen.items():
        if choice.steps:
            raise RunError(
                f"live=True: sink {name!r} is captured in terms of {', '.join(choice.steps)}; the "
                "live graph has source records: capture the sink itself"
            )
    sources = {
        node.name: node for sink in traced for node in sink.upstream() if isinstance(node, Source)
    }
    above = {node.step: node for sink in traced for node in sink.upstream()}
    named = tuple(step for step in above if step in flow._named) if steps else ()
    if steps and not named:
        raise RunError(
            "live='steps' shows the steps that have a name, and none has: give one with "
            "frame.named('…')"
        )
    lazy = [name for name, choice in chosen.items() if choice.mode in LAZY]
    if named and lazy:
        raise RunError(
            f"live='steps' needs capture='eager': sink {lazy[0]!r} is captured as "
            f"{chosen[lazy[0]].mode!r}"
        )
    if not by_driver and lazy:
        raise RunError(
            f"live=True on a lake needs capture='eager': sink {lazy[0]!r} is captured as "
            f"{chosen[lazy[0]].mode!r}, and no batch on a lake waits for a replay"
        )
    if not by_driver and named:
        raise RunError("live='steps' is for a store in a folder; on a lake, use live=True")
    starts = {**sources, **{step: above[step] for step in named}}
    reaches = {name: flow.reach(node, traced) for name, node in starts.items()}
    sinks = list(flow.sinks.values())
    in_files = tuple(
        node
        for name, node in sources.items()
        if by_driver and reaches[name].unbounded is None and times_in_files(node, sinks)
    )
    return Plan(rule, reaches, bool(lazy), above, named, in_files)


def going_on(plan: Plan, flow: Flow, writer: EmbeddedWriter, query_id: str) -> LiveGraph:
    """The graph as the store left it."""
    folder = flow_folder(writer.path, flow.name)
    graph = LiveGraph(plan.reaches, plan.expiry, folder, frozenset(plan.steps))
    graph.restore(
        writer.last_batch(query_id), micros(writer.watermark(query_id)), writer.alive(flow.name)
    )
    return graph


class _Within:
    """The store as a transaction sees it."""

    def __init__(self, path: Path, connection: duckdb.DuckDBPyConnection) -> None:
        self.path = path
        self._connection = connection

    def query(self, sql: str, params: Any = ()) -> pa.Table:
        """The rows of one SELECT."""
        return self._connection.sql(sql, params=list(params)).to_arrow_table()


def resolver(flow: Flow, writer: EmbeddedWriter, plan: Plan | None) -> Resolve | None:
    """What finds the sets of results that came without, before the batch is committed."""
    if plan is None or not plan.lazy:
        return None

    def resolve(connection: duckdb.DuckDBPyConnection, name: str, ids: Ints) -> dict[str, pa.Table]:
        from headwater.replay.engine import Engine
        from headwater.store.catalog import Catalog

        within = _Within(writer.path, connection)
        catalog = Catalog.read(within.query)
        engine = Engine(within, catalog)
        engine.use(flow)
        found = engine.sets(catalog.sink(f"{flow.name}/{name}"), ids)
        return {
            source: found.filter(pc.equal(found["source"], source))
            for source in pc.unique(found["source"]).to_pylist()
        }

    return resolve
