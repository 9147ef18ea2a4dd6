"""Where something can be sent to, and what every answer to it must be."""

from __future__ import annotations

from typing import Any

import httpx

from headwater.server.operations import description

DESCRIBED = description()["paths"]
NAMES = {"flow": "weather", "stream": "nums", "query": "few", "job": "late", "node": "solve"}
OTHERS = {"action": "pause", "version": "1", "number": "1"}
POSTS = [path.format(**NAMES, **OTHERS) for path, methods in DESCRIBED.items() if "post" in methods]
BODIES = [path for path in POSTS if not path.endswith(("/stop", "/resume", "/undo", "/finish"))]
PATHS = [path for path in DESCRIBED if "{" in path and not path.endswith("follow")]
JSON = {"Content-Type": "application/json"}


def sane(response: httpx.Response) -> dict[str, Any]:
    """An answer that is one: no fault of the service, and JSON that says what is wrong."""
    assert response.status_code < 500, (response.status_code, response.text[:500])
    told: dict[str, Any] = response.json()
    if response.status_code >= 400:
        assert told["error"]
        assert told["kind"]
        assert "\n" not in told["error"]
        assert len(told["error"]) < 3_000
    return told
