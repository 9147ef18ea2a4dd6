"""The service itself: health, metrics, and the page."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse, Response

import headwater as hw
from headwater import lineage
from headwater.deploy.monitoring.exporting import text as flow_metrics
from headwater.errors import HeadwaterError
from headwater.server.answers import answer
from headwater.server.routes.common import ERRORS
from headwater.sustain.metrics import CONTENT_TYPE, sample

if TYPE_CHECKING:
    from headwater.server.service import Service


def router(service: Service) -> APIRouter:
    """The routes of the service."""
    routes = APIRouter(tags=["service"], responses=ERRORS)
    work, settings = service.work, service.settings

    @routes.get("/api/health")
    async def health() -> Response:
        """Whether all is well, and what this service is."""
        told = await work.files(service.health)
        return answer(
            {
                **told,
                "version": hw.__version__,
                "started": datetime.fromtimestamp(service.started, UTC),
                "uptime": round(time.time() - service.started, 1),
                "runs": service.runs,
                "reads": "open" if settings.read_token is None else "token",
                "writes": "off" if settings.token is None else "token",
                "allow_code": settings.allow_code,
                "limits": {"rows": settings.limits.rows, "vertices": settings.limits.vertices},
            }
        )

    @routes.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Everything that is measured, for Prometheus."""
        text = await work.files(lambda: _metrics(service))
        return PlainTextResponse(text, media_type=CONTENT_TYPE)

    return routes


def _metrics(service: Service) -> str:
    statuses: list[dict[str, Any]] = []
    for flow in service.board.names():
        status = service.board.status(flow)
        if status is not None:
            statuses.append(status)
    own = service.counts.text() + "".join(_lineage())
    try:
        return flow_metrics(statuses) + own
    except HeadwaterError:
        return own


def _lineage() -> Iterator[str]:
    """What became of OpenLineage events."""
    name = "headwater_lineage_events_total"
    yield f"# HELP {name} OpenLineage events, by what became of them.\n"
    yield f"# TYPE {name} counter\n"
    for what, count in lineage.counts().items():
        yield sample(name, {"outcome": what}, count) + "\n"
