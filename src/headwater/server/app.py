"""The application: all routes behind one door."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI

import headwater as hw
from headwater.server import failures, pages
from headwater.server.guard import Guard
from headwater.server.routes import flows, graph, jobs, marks, queries, results, streams, system

if TYPE_CHECKING:
    from headwater.server.service import Service

ABOUT = """Exact record-level provenance of the flows that run here.

Ids are text in JSON: they have 64 bits. Times are ISO 8601 in UTC. Tables come as Arrow, too:
`Accept: application/vnd.apache.arrow.stream`. Writing needs `Authorization: Bearer TOKEN`.
"""


def application(service: Service) -> FastAPI:
    """What a web server serves."""
    app = FastAPI(
        title="Headwater",
        version=hw.__version__,
        description=ABOUT,
        openapi_url="/api/openapi.json",
        # These would load their scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
    )
    failures.install(app)
    for part in (system, flows, streams, queries, results, graph, marks, jobs):
        app.include_router(part.router(service))
    pages.add(app)
    app.add_middleware(Guard, settings=service.settings, counts=service.counts)
    return app
