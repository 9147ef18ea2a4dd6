"""What can be asked of the live graphs in a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.query import follow, sampling
from headwater.query import graph as graphs
from headwater.query.opened import Opened, one_id
from headwater.store import ids as record_ids

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from headwater.query.follow import GraphChange
    from headwater.query.predicate import Time
    from headwater.store.catalog import Source


class LiveQueries(Opened):
    """The part of a store that answers for live graphs."""

    def graph(self, *, at: Time | None = None, flow: str | None = None) -> graphs.Graph:
        """The live graph: `.vertices`, `.edges`, `.labels`, in the order of their delivery.

        `at` is a watermark: the graph as it stood when batches up to it had been committed.
        """
        self._refresh()
        return graphs.graph(self._reader, self._catalog, flow, at)

    def vertex(self, id: object, name: str | None = None) -> pa.Table:
        """The vertices of the live graph with an id: when they came, and whether they are past.

        `name` is the source or sink; with a source's, the id may be the user's own value.
        """
        found = self._live()
        source = next((s for s in found.sources if s.name == name), None)
        if source is not None:
            number = record_ids.resolved(source, id, self._reader.query)
        else:
            number = one_id(id)
        return graphs.vertex(found, number, name)

    def alive(self, source: str) -> pa.Table:
        """The records in the live graph that may still reach a result: `id`, `event_time`, …"""
        return graphs.labelled(self._reader, self._live_source(source), past=False)

    def expired(self, source: str) -> pa.Table:
        """The records in the live graph that can reach no more: `id`, `event_time`, …"""
        return graphs.labelled(self._reader, self._live_source(source), past=True)

    def unbounded(self) -> dict[str, str]:
        """By source: the step that keeps its records alive until the flow is finished, and why."""
        self._live()
        return graphs.unbounded(self._reader)

    def safe_offset(self, source: str) -> pa.Table:
        """From where a source must still be kept: `event_time`, `batch`, `path`, `modified`.

        What came before has no part in any result to come; where provenance is found by replays,
        earlier results still need it. No row means that nothing is needed any more.
        """
        known = self._live_source(source)
        return graphs.safe_offset(self._reader, self._catalog, known)

    def follow(
        self,
        *,
        after: int = 0,
        flow: str | None = None,
        wait: bool = True,
        timeout: float | None = None,
    ) -> Iterator[GraphChange]:
        """The changes of the live graph as batches are committed, one for each batch.

        `after` is the `position` of the last change that was dealt with. It goes on until the flow
        is finished, until nothing came for `timeout` seconds, or, without `wait`, to the latest.
        """
        found = self._live(flow)
        flows = sorted({sink.flow for sink in found.sinks})
        committed = follow.batches(self._reader, flows, after, wait=wait, timeout=timeout)
        return follow.changes(found, committed)

    def publish_graph(
        self,
        topic: str,
        *,
        bootstrap: str | None = None,
        config: str | None = None,
        flow: str | None = None,
        after: int = 0,
        wait: bool = True,
        timeout: float | None = None,
    ) -> Iterator[GraphChange]:
        """Publish the live graph of a flow to a topic of Kafka; each change once it is there.

        It goes on after what the topic has, so that a reader of what is committed finds every
        change once; with `after`, not before that position. `bootstrap` is the broker's address,
        by default that in `HEADWATER_KAFKA`; `config` a file of more properties of the client.
        `wait` and `timeout` are as in `follow`. A topic that is missing is made.
        """
        from headwater.query import publishing

        to = publishing.settings(topic, bootstrap, config)
        found = self._live(flow)
        name, query = publishing.only(self._reader, flow)
        steps = {source.name for source in found.sources if source.is_step}

        def changes(last: int) -> Iterator[GraphChange]:
            begun = max(after, last)
            publishing.require_remembered(self._reader, name, begun)
            return self.follow(after=begun, flow=name, wait=wait, timeout=timeout)

        return publishing.published(to, name, query, steps, changes)

    def sample(
        self,
        flow: str | None = None,
        *,
        at: Time | None = None,
        limit: int = 3_000,
        after: int = 0,
        until: int | None = None,
    ) -> sampling.Sample:
        """The newest part of a flow's live graph, to be looked at: `limit` vertices at most.

        Of the flow that committed last, unless one is named; `at` is as in `graph`. `after` and
        `until` are positions: then it is of what the batches between them added.
        """
        self._refresh()
        return sampling.sample(self._edges, flow, at=at, limit=limit, after=after, until=until)

    def watermarks(self, flow: str | None = None, *, limit: int = 500) -> pa.Table:
        """The batches of a flow with a live graph: `position`, `batch`, `watermark`, `results`.

        Where there are more than `limit`, every n-th of them, the latest among them.
        """
        name = flow if flow is not None else sampling.latest_flow(self._edges)
        return sampling.watermarks(self._edges, name, limit)

    def _live(self, flow: str | None = None) -> graphs.Parts:
        self._refresh()
        return graphs.parts(self._reader, self._catalog, flow)

    def _live_source(self, name: str) -> Source:
        known = self._source(name)
        self._live(known.flow)
        return known
