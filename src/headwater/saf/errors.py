"""Errors of the SAF model, beside `FlowError` for a flow that can't be built or followed."""

from __future__ import annotations

from headwater.errors import HeadwaterError, UnknownName


class TableError(HeadwaterError, ValueError):
    """A table of assertions, keys or events that lacks something or has the wrong type."""


class UnknownStream(UnknownName):
    """No operation of the flow reads or makes the asked stream."""
