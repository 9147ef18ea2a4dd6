"""What can go wrong with a stream, one line each."""

from __future__ import annotations

from headwater.errors import HeadwaterError


class StreamError(HeadwaterError):
    """A stream that can't be made, written or read as asked."""


class SchemaClash(StreamError):
    """Events that don't have the columns or the types of their stream."""


class StreamRemoved(StreamError):
    """A stream that was removed while it was written or read."""


class LogUnreachable(StreamError):
    """A log whose server does not answer now, and may later."""
