"""The command line: one module per command, each a thin layer over the Python API."""

from __future__ import annotations

from headwater.cli.app import app, main

__all__ = ["app", "main"]
