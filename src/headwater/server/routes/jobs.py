"""Foreign jobs: the elements of their provenance in, and what is known of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from headwater.server.answers import answer, table
from headwater.server.failures import Refused
from headwater.server.routes.common import ERRORS, TABLE

if TYPE_CHECKING:
    from headwater.server.service import Service

JobName = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$", description="A job.")]


def router(service: Service) -> APIRouter:
    """The routes of jobs."""
    routes = APIRouter(prefix="/api/jobs", tags=["jobs"], responses=ERRORS)
    work = service.work

    @routes.get("", responses=TABLE)
    async def jobs(request: Request) -> Response:
        """The jobs whose provenance is in the store."""
        return table(request, await work.query(lambda: service.store.jobs()))

    @routes.post(
        "/{job}/elements",
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
            }
        },
    )
    async def elements(
        request: Request,
        job: JobName,
        strategy: Annotated[
            Literal["grouping", "window", "watermark"],
            Query(description="When an intermediate is eliminated; of the first call."),
        ] = "grouping",
    ) -> Response:
        """Take PROV elements of a job, one JSON object a line; they are then safe."""
        body = await request.body()
        try:
            body.decode()
        except UnicodeDecodeError as error:
            raise Refused(
                422, f"elements are lines of JSON in UTF-8: {error}", "Invalid"
            ) from error
        return answer(await work.change(lambda: service.reductions.add(job, body, strategy)))

    @routes.post("/{job}/finish")
    async def finish(job: JobName) -> Response:
        """Say that a job is complete."""
        return answer(await work.change(lambda: service.reductions.finish(job)))

    return routes
