"""Times as whole microseconds, in arrays that have no room for a missing one."""

from __future__ import annotations

NO_TIME = -(1 << 63)
"""In place of a time that is not known."""
