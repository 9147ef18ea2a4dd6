"""Jobs: provenance of foreign computations, reduced to dependencies of outputs on inputs."""

from __future__ import annotations

from headwater.store.jobs.given import (
    Committed,
    Counts,
    Finished,
    JobSettings,
)
from headwater.store.jobs.writer import JobWriter

__all__ = [
    "Committed",
    "Counts",
    "Finished",
    "JobSettings",
    "JobWriter",
]
