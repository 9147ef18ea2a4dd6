"""Results and where they came from: results, backward, forward, why-not, replay, exports."""

from __future__ import annotations

import tempfile
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, Response
from pydantic import Field
from starlette.background import BackgroundTask

from headwater.errors import PredicateError
from headwater.query import entity_name, marks
from headwater.server.answers import answer, as_json, columns, part, table
from headwater.server.bounded import bounded
from headwater.server.conditions import checked
from headwater.server.inventory import inventory
from headwater.server.routes.common import (
    ERRORS,
    TABLE,
    After,
    Body,
    Ids,
    Limit,
    Moment,
    Where,
    given_id,
    given_ids,
    result_ids,
)

if TYPE_CHECKING:
    from headwater.query import Store
    from headwater.server.service import Service

Named = Annotated[str, Query(max_length=500, description="A name, or `flow/name`.")]
Maybe = Annotated[str | None, Query(max_length=500, description="A name, or `flow/name`.")]
Entity = Annotated[
    str | None, Query(max_length=2_000, description="An entity's name, across jobs and flows.")
]
ROWS = 1_000
"""Rows of a replay's tables at most."""
SUFFIX = {
    "prov-json": "json",
    "prov-n": "provn",
    "dot": "dot",
    "graphml": "graphml",
    "openlineage": "jsonl",
}


class Replay(Body):
    """A result to be computed again."""

    sink: Annotated[str, Field(max_length=500)]
    result_id: Annotated[str, Field(pattern=r"^-?[0-9]{1,20}$", description="As text: 64 bits.")]
    steps: bool = False


def router(service: Service) -> APIRouter:
    """The routes of results."""
    routes = APIRouter(prefix="/api", tags=["provenance"], responses=ERRORS)
    work, limits = service.work, service.settings.limits

    @routes.get("/store")
    async def store() -> Response:
        """What the store knows: flows, sources, sinks, how much."""
        return answer(await work.query(lambda: inventory(service.store)))

    @routes.get("/results", responses=TABLE)
    async def results(
        request: Request,
        sink: Maybe = None,
        where: Where = None,
        since: Moment = None,
        until: Moment = None,
        limit: Limit = 50,
        order: Literal["newest", "oldest"] = "newest",
        after: Annotated[str | None, Query(pattern=r"^[0-9]{1,19}:-?[0-9]{1,19}$")] = None,
    ) -> Response:
        """Results of a sink by delivery, a page at a time; `next` is the `after` of the next."""
        place = None if after is None else tuple(int(part) for part in after.split(":"))
        rows, last = await work.query(
            lambda: service.store.results_page(
                sink,
                where=checked(where),
                since=since,
                until=until,
                limit=min(limit, limits.rows),
                newest=order == "newest",
                after=place,  # type: ignore[arg-type]
            )
        )
        return table(request, rows, after=None if last is None else f"{last[0]}:{last[1]}")

    @routes.get("/result")
    async def result(sink: Named, result_id: Annotated[str, Query(max_length=20)]) -> Response:
        """One result with its own columns."""

        def look() -> dict[str, Any]:
            number = result_ids([result_id])
            found = service.store.results(sink, where=f"result_id = {number}")
            service.store._require(service.store._sink(sink), number)
            known = service.store._sink(sink)
            return {
                "sink": known.name,
                "qualified": known.qualified,
                "flow": known.flow,
                "capture": known.capture,
                "entity": entity_name(known.flow, known.name, number),
                "columns": columns(found.schema),
                "row": as_json(found)["rows"][0],
                # Which records a lazily captured result holds, only a replay can say.
                "marked": None
                if known.is_lazy
                else bool(marks.holding(service.store._edges, known, [number])),
            }

        return answer(await work.query(look))

    @routes.get("/backward", responses=TABLE)
    async def backward(
        request: Request,
        sink: Maybe = None,
        result_id: Ids = None,
        entity: Entity = None,
        steps: bool = False,
        to: Maybe = None,
        columns: bool = True,
        limit: Limit = 1_000,
        after: After = None,
    ) -> Response:
        """The source records of results, or the inputs of an entity."""
        _require_one(result_id, entity, "result_id")

        def look() -> Any:
            if entity is not None:
                return service.store.backward(entity=entity, steps=steps)
            ids = result_ids(result_id or [])
            return service.store.backward(sink, ids, columns=columns, to=to)

        lazily = to is not None or service.store.replays
        rows = await (work.spark(look) if lazily else work.query(look))
        keys = ("result_id",) * (len(result_id or ()) > 1) + ("source", "id")
        keys = ("id", "job") if entity is not None else keys
        return table(request, rows, limit=min(limit, limits.rows), keys=keys, since=after)

    @routes.get("/forward", responses=TABLE)
    async def forward(
        request: Request,
        source: Maybe = None,
        id: Ids = None,
        entity: Entity = None,
        steps: bool = False,
        sink: Maybe = None,
        limit: Limit = 1_000,
        after: After = None,
    ) -> Response:
        """The results of records, or the outputs of an entity."""
        _require_one(id, entity, "id")

        def look() -> Any:
            if entity is not None:
                return service.store.forward(entity=entity, steps=steps)
            return service.store.forward(source, given_ids(id or []), sink=sink)

        rows = await (work.spark(look) if service.store.replays else work.query(look))
        keys = ("id",) * (len(id or ()) > 1) + ("sink", "result_id")
        keys = ("id", "job") if entity is not None else keys
        return table(request, rows, limit=min(limit, limits.rows), keys=keys, since=after)

    @routes.get("/record")
    async def record(source: Named, id: Annotated[str, Query(max_length=2_000)]) -> Response:
        """One record with its own columns, as far as they are kept or can be read again."""
        return answer(await work.query(lambda: _record(service.store, source, given_id(id))))

    @routes.get("/why-not", responses=TABLE)
    async def why_not(
        request: Request,
        source: Named,
        id: Annotated[str, Query(max_length=2_000)],
        sink: Maybe = None,
    ) -> Response:
        """What became of a record on its way to each sink."""
        service.host  # noqa: B018 - raises where there is no Spark
        rows = await work.spark(lambda: service.replays.why_not(source, given_id(id), sink=sink))
        return table(request, rows)

    @routes.post("/replay")
    async def replay(body: Replay) -> Response:
        """Compute a result again from its records alone, and compare."""
        service.host  # noqa: B018 - raises where there is no Spark
        return answer(await work.spark(lambda: _replayed(service.replays, body)))

    @routes.get(
        "/export",
        responses={
            200: {
                "description": "The file.",
                "content": {
                    "application/json": {"schema": {"type": "object"}},
                    "text/plain": {"schema": {"type": "string"}},
                },
            }
        },
    )
    async def export(
        format: Literal["prov-json", "prov-n", "dot", "graphml", "openlineage"] = "prov-json",
        sink: Maybe = None,
        result_id: Ids = None,
        source: Maybe = None,
        id: Ids = None,
        entity: Entity = None,
        direction: Literal["backward", "forward"] = "backward",
        where: Where = None,
        since: Moment = None,
        until: Moment = None,
    ) -> Response:
        """Results, records and what connects them, as a file in another format."""
        folder = tempfile.TemporaryDirectory(prefix="headwater-export-")
        path = FilePath(folder.name) / f"provenance.{SUFFIX[format]}"

        def written() -> None:
            with bounded(path, limits.export) as file:
                service.replays.export(
                    file,
                    format=format,
                    sink=sink,
                    result_id=None if result_id is None else result_ids(result_id),
                    source=source,
                    id=None if id is None else given_ids(id),
                    entity=entity,
                    direction=direction,
                    where=checked(where),
                    since=since,
                    until=until,
                )

        try:
            await work.spark(written)
        except BaseException:
            folder.cleanup()
            raise
        kind = "application/json" if format == "prov-json" else "text/plain; charset=utf-8"
        cleaning = BackgroundTask(folder.cleanup)
        return FileResponse(path, media_type=kind, filename=path.name, background=cleaning)

    return routes


def _require_one(ids: list[str] | None, entity: str | None, name: str) -> None:
    if (not ids) == (entity is None):
        raise PredicateError(f"give either {name} or entity")


def _record(store: Store, source: str, id: Any) -> dict[str, Any]:
    import numpy as np

    from headwater.query import records
    from headwater.store import ids as record_ids

    known = store._source(source)
    number = record_ids.resolved(known, id, store._reader.query)
    found = records.found(store._reader, known, np.array([number], np.int64))
    names = ["id", "event_time", *known.schema.names]
    rows = as_json(found.rename_columns(names), ("id",))["rows"]
    held = marks.on(store._reader, known, number)
    return {
        "source": known.name,
        "qualified": known.qualified,
        "flow": known.flow,
        "id": str(number),
        "entity": store.entity(source, number),
        "streams": list(known.streams),
        "columns": columns(known.schema),
        "row": rows[0] if rows else None,
        "marks": held,
        "marked": [each["mark"] for each in held],
    }


def _replayed(store: Store, body: Replay) -> dict[str, Any]:
    number = result_ids([body.result_id])
    done = store.replay(body.sink, number, steps=body.steps)
    stored = store.results(body.sink, where=f"result_id = {number}")
    return {
        "sink": body.sink,
        "result_id": str(number),
        "matches": done.matches,
        "row": done.row,
        "stored": as_json(stored)["rows"][0],
        "differences": {
            name: {"stored": each.stored, "replayed": each.replayed}
            for name, each in done.differences.items()
        },
        "sources": part(done.sources, ROWS),
        "steps": [
            {
                "step": step.step,
                "kind": step.kind,
                "describe": step.describe,
                "inputs": list(step.inputs),
                **part(step.rows, ROWS),
                "count": step.rows.num_rows,
            }
            for step in done.steps
        ],
    }
