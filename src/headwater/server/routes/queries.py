"""Queries registered over streams: SQL whose results are a stream, for as long as it is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from pydantic import Field

from headwater.compose import Composition
from headwater.compose.frozen import thawed
from headwater.compose.kinds import Sink, Source, Sql
from headwater.compose.planning import deployable
from headwater.compose.queries import query_of
from headwater.errors import FlowError, RunError, UnknownName
from headwater.server.answers import answer
from headwater.server.board import QUERY
from headwater.server.permitting import require_permitted
from headwater.server.routes.common import ERRORS, NAME, Body
from headwater.server.routes.streams import _position, stream_events
from headwater.server.sending import EventStream, follow, last_id

if TYPE_CHECKING:
    from headwater.server.service import Service

QueryName = Annotated[str, Path(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,80}$", description="A query.")]


class Register(Body):
    """A query to be."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,80}$")]
    sql: Annotated[
        str, Field(min_length=1, max_length=20_000, description="A SELECT over named streams.")
    ]
    to: Annotated[
        str | None, Field(pattern=NAME, description="The stream of its results; by default, own.")
    ] = None
    webhook: Annotated[
        str | None, Field(max_length=2_000, description="An address to tell of each result.")
    ] = None
    watermark: Annotated[
        str | None, Field(max_length=40, description="How long late events are waited for.")
    ] = None
    since: Literal["now", "start"] = "now"


def router(service: Service) -> APIRouter:
    """The routes of queries."""
    routes = APIRouter(prefix="/api/queries", tags=["queries"], responses=ERRORS)
    work = service.work

    @routes.get("")
    async def queries() -> Response:
        """The queries that are registered."""

        def look() -> list[dict[str, Any]]:
            names = [name for name in service.board.names() if name.startswith(QUERY)]
            return [_told(service, name.removeprefix(QUERY)) for name in names]

        return answer({"queries": await work.look(look)})

    @routes.post("", status_code=201)
    async def register(body: Register) -> Response:
        """Register a query: its results are published from now on, or of all there is."""

        def done() -> dict[str, Any]:
            if service.board.files(QUERY + body.name).exists:
                raise RunError(f"there is a query {body.name!r} already; unregister it first")
            composition = composed(service, body)
            require_permitted(composition, service.settings)
            deployable(composition)
            service.host.deploy(composition, since=body.since)
            return _told(service, body.name)

        return answer(await work.change(done), 201)

    @routes.get("/{query}")
    async def query(query: QueryName) -> Response:
        """A query as it is now."""
        return answer(await work.look(lambda: _told(service, query)))

    @routes.delete("/{query}")
    async def unregister(
        query: QueryName,
        keep: Annotated[bool, Query(description="Keep the stream of its results.")] = True,
    ) -> Response:
        """End a query; the stream of its results stays, unless told otherwise."""

        def done() -> None:
            told = _told(service, query)
            service.host.remove(QUERY + query)
            if not keep and told["to"]["stream"] in service.streams:
                service.streams.remove(told["to"]["stream"], force=True)

        await work.change(done)
        return answer({"unregistered": query})

    @routes.get("/{query}/follow", response_class=EventStream)
    async def listen(
        request: Request,
        query: QueryName,
        after: Annotated[str | None, Query(max_length=1_000)] = None,
    ) -> Response:
        """The query's results as they come, as server-sent events."""
        begin = last_id(request, after)
        stream = (await work.look(lambda: _told(service, query)))["to"]["stream"]
        start = await work.look(lambda: _position(service, stream, begin))
        return follow(service, request, stream_events(service, stream, start))

    return routes


def composed(service: Service, body: Register) -> Composition:
    """The flow that a query is: its streams, its SQL, and a sink."""
    read = query_of(body.sql)
    if read.wrong is not None:
        raise FlowError(f"the query {read.wrong}")
    if not read.tables:
        raise FlowError("the query reads no stream: name one behind FROM")
    flow = Composition(QUERY + body.name)
    for table in read.tables:
        declared = service.streams.declaration(table)
        timed = declared.event_time is not None
        flow = flow.source(
            table,
            stream=table,
            schema=declared.schema,
            event_time=declared.event_time,
            watermark=(body.watermark or "10 seconds") if timed else None,
            id=declared.id or (),
        )
    flow = flow.sql("results", list(read.tables), query=body.sql)
    alert = None if body.webhook is None else {"webhook": body.webhook}
    return flow.sink("out", "results", stream=body.to or body.name, alert=alert)


def _told(service: Service, query: str) -> dict[str, Any]:
    name = QUERY + query
    files = service.board.files(name)
    if not files.exists:
        names = [n.removeprefix(QUERY) for n in service.board.names() if n.startswith(QUERY)]
        raise UnknownName(f"no query {query!r}; there is {', '.join(names) or 'none'}")
    state = files.state()
    nodes = files.composition(state["version"] or state["target"]).nodes.values()
    (sql,) = [node for node in nodes if isinstance(node, Sql)]
    (sink,) = [node for node in nodes if isinstance(node, Sink)]
    line = next(each for each in service.board.flows() if each["flow"] == name)
    status = service.board.status(name)
    rates = {row["stream"]: row for row in status["streams"]} if status else {}
    out = rates.get(sink.stream or "", {})
    return {
        "query": query,
        "flow": name,
        "sql": sql.query,
        "streams": [node.stream for node in nodes if isinstance(node, Source)],
        "to": {
            "stream": sink.stream,
            "webhook": None if sink.alert is None else thawed(sink.alert).get("webhook"),
        },
        "state": line["state"],
        "rate": out.get("rate"),
        "events": out.get("events"),
    }
