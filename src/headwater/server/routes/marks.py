"""Marks on records, and erasing what is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from pydantic import Field

from headwater.query.marks import one_of
from headwater.server.answers import answer, part, table
from headwater.server.conditions import checked
from headwater.server.routes.common import ERRORS, TABLE, After, Body, Limit, given_id

if TYPE_CHECKING:
    from headwater.server.service import Service


class Records(Body):
    """Which records of a source are meant, and why."""

    source: Annotated[str, Field(max_length=500)]
    where: Annotated[
        str | None, Field(max_length=4_000, description="An SQL condition on its columns.")
    ] = None
    ids: Annotated[
        list[str] | None, Field(max_length=10_000, description="Or their ids, as text.")
    ] = None
    reason: Annotated[str, Field(max_length=2_000)] = ""

    def chosen(self) -> dict[str, Any]:
        """As the store's calls take them."""
        ids = None if self.ids is None else [given_id(text) for text in self.ids]
        return {"where": checked(self.where), "ids": ids, "reason": self.reason}


class Erasure(Records):
    """Records to be erased."""

    mark: Annotated[int | None, Field(ge=0, le=1 << 31, description="Or those of a mark.")] = None
    dry_run: Annotated[bool, Field(description="Only say what would be erased.")] = False


def router(service: Service) -> APIRouter:
    """The routes of marks."""
    routes = APIRouter(prefix="/api", tags=["marks"], responses=ERRORS)
    work, limits = service.work, service.settings.limits

    @routes.get("/marks", responses=TABLE)
    async def marks(request: Request) -> Response:
        """The marks, and how many records each holds by now."""
        return table(request, await work.query(lambda: service.store.marks()))

    @routes.post("/marks", status_code=201)
    async def mark(body: Records) -> Response:
        """Mark records, and so every result that holds one, now and as they come."""
        one_of(where=body.where, ids=body.ids)
        done = await work.query(
            lambda: service.store.mark(body.source, **body.chosen()), limits.replay_seconds
        )
        told = {"mark": done.number, "source": done.source, "records": done.records}
        return answer({**told, "results": part(done.results, limits.rows)}, 201)

    @routes.delete("/marks/{number}")
    async def unmark(number: Annotated[int, Path(ge=0, le=1 << 31)]) -> Response:
        """Take a mark away."""
        await work.query(lambda: service.store.unmark(number))
        return answer({"removed": number})

    @routes.get("/marked", responses=TABLE)
    async def marked(
        request: Request,
        sink: Annotated[str | None, Query(max_length=500)] = None,
        limit: Limit = 1_000,
        after: After = None,
    ) -> Response:
        """The results that hold a marked record."""
        rows = await work.query(lambda: service.store.marked(sink))
        most, keys = min(limit, limits.rows), ("sink", "result_id", "mark")
        return table(request, rows, limit=most, keys=keys, since=after)

    @routes.post("/erasures")
    async def erase(body: Erasure) -> Response:
        """Remove the contents of records for good; ids and edges stay."""
        one_of(where=body.where, ids=body.ids, mark=body.mark)
        chosen = {**body.chosen(), "mark": body.mark, "dry_run": body.dry_run}
        done = await work.spark(lambda: service.replays.erase(body.source, **chosen))
        told = {"source": done.source, "records": done.records, "copies": done.copies}
        results = part(done.results, limits.rows)
        return answer({**told, "dry_run": body.dry_run, "results": results})

    return routes
