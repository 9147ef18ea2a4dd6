"""The service: flows at work, the REST API and the web page, in the process that owns the store."""

from __future__ import annotations

from headwater.server.settings import Settings

__all__ = ["Settings"]
