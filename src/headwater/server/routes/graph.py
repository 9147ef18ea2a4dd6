"""The live graph: samples of it, now or at a watermark, and what each batch adds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from headwater.query.live import live_flows
from headwater.query.sampling import end_of, latest_flow, query_id_of, totals
from headwater.server.answers import answer, as_json, table
from headwater.server.board import with_unit
from headwater.server.routes.common import ERRORS, TABLE, Moment, given_id
from headwater.server.sending import Event, EventStream, follow, last_id

if TYPE_CHECKING:
    from headwater.query import Store
    from headwater.query.sampling import Sample, Totals
    from headwater.server.service import Service

_LAST = 1 << 62
LOOK = 0.5
"""Seconds between two looks for a new batch."""
COUNTED = 500
"""Changes after which all is counted anew, as the store may have forgotten some."""
FlowOf = Annotated[
    str | None, Query(max_length=500, description="A flow of the store; the latest by default.")
]


def router(service: Service) -> APIRouter:
    """The routes of the graph."""
    routes = APIRouter(prefix="/api/graph", tags=["graph"], responses=ERRORS)
    work, most = service.work, service.settings.limits.vertices

    @routes.get("")
    async def graph(
        flow: FlowOf = None,
        at: Moment = None,
        limit: Annotated[int, Query(ge=1, description="Vertices at most.")] = 3_000,
    ) -> Response:
        """The newest part of a flow's live graph, and how much there is in all."""
        found = await work.query(lambda: service.store.sample(flow, at=at, limit=min(limit, most)))
        return answer({**_told(found), "at": at})

    @routes.get("/flows")
    async def flows() -> Response:
        """The flows with a live graph, the one that committed last first."""
        return answer({"flows": await work.query(lambda: _flows(service.store))})

    @routes.get("/watermarks")
    async def watermarks(
        flow: FlowOf = None, limit: Annotated[int, Query(ge=2, le=5_000)] = 500
    ) -> Response:
        """The batches of a flow with their watermarks, thinned out where there are many."""

        def look() -> dict[str, Any]:
            name = flow if flow is not None else latest_flow(service.store._edges)
            rows = service.store.watermarks(name, limit=limit)
            return {"flow": name, "watermarks": as_json(rows)["rows"]}

        return answer(await work.query(look))

    @routes.get("/follow", response_class=EventStream)
    async def following(
        request: Request,
        flow: FlowOf = None,
        after: Annotated[int | None, Query(ge=0, le=_LAST, description="A position.")] = None,
        limit: Annotated[int, Query(ge=1, description="Vertices of a change at most.")] = 500,
    ) -> Response:
        """What each batch adds to the graph, as server-sent events named `change`."""
        begin = last_id(request, None if after is None else str(after))

        def where() -> tuple[str, int]:
            store = service.store
            name = flow if flow is not None else latest_flow(store._edges)
            query_id_of(store._reader, name)
            if begin is not None and begin.isascii() and begin.isdigit() and len(begin) < 19:
                return name, int(begin)
            return name, end_of(store._reader, name)

        name, start = await work.query(where)
        return follow(service, request, _changes(service, name, start, min(limit, most)))

    @routes.get("/vertex", responses=TABLE)
    async def vertex(
        request: Request,
        id: Annotated[str, Query(max_length=2_000)],
        name: Annotated[str | None, Query(max_length=500)] = None,
    ) -> Response:
        """The vertices with an id: when they came, and whether they are past."""
        rows = await work.query(lambda: service.store.vertex(given_id(id), name))
        return table(request, rows)

    return routes


def _told(found: Sample) -> dict[str, Any]:
    return {
        "flow": found.flow,
        "position": found.position,
        "watermark": found.watermark,
        "totals": asdict(found.totals),
        "shown": {"vertices": found.vertices.num_rows, "edges": found.edges.num_rows},
        "vertices": as_json(found.vertices)["rows"],
        "edges": as_json(found.edges)["rows"],
    }


def _flows(store: Store) -> list[dict[str, Any]]:
    rows = store._reader.query(
        "SELECT f.flow, max(b.seq) AS position, max(b.watermark) AS watermark, "
        "coalesce(sum(b.results), 0)::BIGINT AS results, "
        "coalesce(sum(b.edges), 0)::BIGINT AS edges, max(b.committed_at) AS committed_at "
        "FROM flows f LEFT JOIN batches b USING (query_id) GROUP BY f.flow "
        "ORDER BY max(b.seq) DESC NULLS LAST"
    )
    live = live_flows(store._reader)
    return [
        {**with_unit(row), "finished": live[row["flow"]].finished}
        for row in as_json(rows)["rows"]
        if row["flow"] in live
    ]


async def _changes(
    service: Service, flow: str, position: int, limit: int
) -> AsyncIterator[Event | None]:
    whole, number = None, 0
    while True:
        known = whole if number % COUNTED else None
        found = await service.work.query(
            partial(_next, service.store, flow, position, limit, known)
        )
        if found is None:
            yield None
            await asyncio.sleep(LOOK)
            continue
        change, whole = found
        position, number = change["position"], number + 1
        yield Event("change", change, str(position))


def _next(
    store: Store, flow: str, position: int, limit: int, known: Totals | None
) -> tuple[dict[str, Any], Totals] | None:
    """What the batches after a position added, of many at once as one change; None for nothing.

    And how much there is in all, counted on from what is `known`.
    """
    query_id = query_id_of(store._reader, flow)
    rows = store._reader.query(
        "SELECT seq, batch, watermark FROM batches WHERE query_id = ? AND seq > ? ORDER BY seq",
        [query_id, position],
    ).to_pylist()
    if not rows:
        return None
    last = rows[-1]
    found = store.sample(flow, limit=limit, after=position, until=last["seq"])
    labels = store._reader.query(
        "SELECT l.source_no, s.name, l.id FROM labels l JOIN sources s USING (source_no) "
        "WHERE s.flow = ? AND l.seq > ? AND l.seq <= ? ORDER BY l.seq DESC, l.id DESC LIMIT ?",
        [flow, position, last["seq"], 4 * limit],
    )
    steps = {source.no for source in store._catalog.sources if source.is_step}
    whole = known + found.totals if known else totals(store._edges, flow, last["seq"])
    return (
        {
            "position": last["seq"],
            "flow": flow,
            "batch": last["batch"],
            "watermark": last["watermark"],
            "batches": len(rows),
            "counts": asdict(found.totals),
            "totals": asdict(whole),
            "vertices": as_json(found.vertices)["rows"],
            "edges": as_json(found.edges)["rows"],
            "labels": [
                {"kind": "step" if row.pop("source_no") in steps else "source", **row}
                for row in as_json(labels)["rows"]
            ],
            "truncated": found.vertices.num_rows < found.totals.vertices,
        },
        whole,
    )
