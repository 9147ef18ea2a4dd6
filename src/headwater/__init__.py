"""Headwater: fine-grained provenance for stream processing on Apache Spark."""

from headwater.capture.run import Run
from headwater.capture.sink import BatchInfo
from headwater.errors import (
    FlowError,
    HeadwaterError,
    IdCollision,
    PredicateError,
    RunError,
    StoreError,
    UnknownId,
    UnknownName,
    UnsupportedError,
)
from headwater.flow.determinism import deterministic
from headwater.flow.flow import Flow
from headwater.flow.frame import Frame
from headwater.query import Store, to_spark
from headwater.store import open  # noqa: A004

__version__ = "0.1.0"

__all__ = [
    "BatchInfo",
    "Flow",
    "FlowError",
    "Frame",
    "HeadwaterError",
    "IdCollision",
    "PredicateError",
    "Run",
    "RunError",
    "Store",
    "StoreError",
    "UnknownId",
    "UnknownName",
    "UnsupportedError",
    "deterministic",
    "open",
    "to_spark",
]
