"""The application: all routes behind one door."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

import headwater as hw
from headwater.server import failures, pages
from headwater.server.guard import CHECKS, READING, Guard
from headwater.server.routes import flows, graph, jobs, marks, queries, results, streams, system
from headwater.server.routes.common import ERRORS

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
        generate_unique_id_function=_operation_id,
    )
    failures.install(app)
    for part in (system, flows, streams, queries, results, graph, marks, jobs):
        app.include_router(part.router(service))
    pages.add(app)
    app.add_middleware(Guard, settings=service.settings, counts=service.counts)
    app.openapi = lambda: described(app)  # type: ignore[method-assign]
    return app


def _operation_id(route: APIRoute) -> str:
    """What generated clients call an operation: its part of the API, and its name in there."""
    return f"{route.tags[0]}_{route.name}" if route.tags else route.name


def described(app: FastAPI) -> dict[str, Any]:
    """The API in OpenAPI's terms: which operations need the token, and what each is for."""
    if app.openapi_schema is not None:
        return app.openapi_schema
    told = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    bearer = {"type": "http", "scheme": "bearer", "description": "As `headwater serve` prints it."}
    told["components"]["securitySchemes"] = {"token": bearer}
    for path, operations in told["paths"].items():
        for method, operation in operations.items():
            text = " ".join(operation.pop("description", "").split())
            operation["summary"] = text or operation["summary"]
            reading = method.upper() in READING or path in CHECKS
            # Reading needs it only where the service was started so.
            operation["security"] = [*([{}] if reading else []), {"token": []}]
            # Errors are JSON, whatever form the answer itself has.
            for status in map(str, ERRORS):
                (content,) = operation["responses"][status]["content"].values()
                operation["responses"][status]["content"] = {"application/json": content}
    app.openapi_schema = told
    return told
