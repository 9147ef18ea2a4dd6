"""The page: one HTML file for all views, and the modules, styles and pictures that it loads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import APIRouter
from fastapi.responses import FileResponse, Response

from headwater.server.failures import Refused

if TYPE_CHECKING:
    from fastapi import FastAPI

FOLDER = (Path(__file__).parent / "page").resolve()
VIEWS = ("trace", "live", "streams", "compose", "sustain")
TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}


def add(app: FastAPI) -> None:
    """Have an application serve the page."""
    routes = APIRouter(include_in_schema=False)

    def index() -> Response:
        return FileResponse(FOLDER / "index.html", media_type=TYPES[".html"])

    for path in ("/", *(f"/{view}" for view in VIEWS)):
        routes.add_api_route(path, index, methods=["GET", "HEAD"])

    @routes.get("/{path:path}")
    def file(path: str) -> Response:
        found = None if path.startswith("api") else _found(path)
        if found is None:
            raise Refused(404, f"there is nothing at /{path[:200]}", "UnknownPath")
        return FileResponse(found, media_type=TYPES[found.suffix])

    app.include_router(routes)


def _found(path: str) -> Path | None:
    """A file of the page, and none that is elsewhere."""
    try:
        found = (FOLDER / path).resolve()
        known = found.is_relative_to(FOLDER) and found.is_file()
    except (OSError, ValueError):  # no name that a file can have
        return None
    return found if known and found.suffix in TYPES else None
