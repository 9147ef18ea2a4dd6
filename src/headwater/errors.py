"""Errors that Headwater raises: one line each, saying what, where and what to do."""

from __future__ import annotations


class HeadwaterError(Exception):
    """Base of every error that Headwater raises on purpose."""


class FlowError(HeadwaterError):
    """A flow that can't be built: a bad name, column, operator or parameter."""


class UnsupportedError(FlowError):
    """A method, operator or option that Headwater does not support, with what to use instead."""


class StoreError(HeadwaterError):
    """A store that can't be opened, read or written."""


class IdCollision(StoreError):
    """Two different records of one source carry the same id."""


class QueryTimeout(StoreError):
    """A query that took longer than it was given."""


class UnknownId(HeadwaterError, KeyError):
    """No result or record has the asked id."""

    __str__ = Exception.__str__


class UnknownName(HeadwaterError, KeyError):
    """No source or sink has the asked name."""

    __str__ = Exception.__str__


class RunError(HeadwaterError):
    """A run that can't start, or that failed while it ran."""


class PredicateError(HeadwaterError, ValueError):
    """A condition of a query that is no condition: bad SQL, an unknown column, no time."""


class TableError(HeadwaterError, ValueError):
    """A table of assertions, keys or events that lacks something or has the wrong type."""


class UnknownStream(UnknownName):
    """No stream has the asked name."""
