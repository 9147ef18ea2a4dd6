"""Headwater: fine-grained provenance for stream processing on Apache Spark."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from headwater.capture.kafka_sink import to_kafka
    from headwater.capture.run import Run
    from headwater.capture.sink import BatchInfo
    from headwater.compose import Composition, CompositionError
    from headwater.flow.determinism import deterministic
    from headwater.flow.flow import Flow
    from headwater.flow.frame import Frame
    from headwater.mapreduce.running import MapReduce, mapreduce
    from headwater.mapreduce.windows import length, time
    from headwater.query import Store, to_spark
    from headwater.reduce.run import Reduction, reduce_job
    from headwater.reduce.sink import ReducedBatch
    from headwater.store import open  # noqa: A004

__version__ = "0.1.0"
"""The one place that says it: the build takes it from here."""

__all__ = [
    "BatchInfo",
    "Composition",
    "CompositionError",
    "Flow",
    "FlowError",
    "Frame",
    "HeadwaterError",
    "IdCollision",
    "MapReduce",
    "PredicateError",
    "ReducedBatch",
    "Reduction",
    "Run",
    "RunError",
    "Store",
    "StoreError",
    "UnknownId",
    "UnknownName",
    "UnsupportedError",
    "deterministic",
    "length",
    "mapreduce",
    "open",
    "reduce_job",
    "time",
    "to_kafka",
    "to_spark",
]

_WHERE = {
    "BatchInfo": "headwater.capture.sink",
    "Composition": "headwater.compose",
    "CompositionError": "headwater.compose",
    "Flow": "headwater.flow.flow",
    "Frame": "headwater.flow.frame",
    "MapReduce": "headwater.mapreduce.running",
    "ReducedBatch": "headwater.reduce.sink",
    "Reduction": "headwater.reduce.run",
    "Run": "headwater.capture.run",
    "Store": "headwater.query",
    "deterministic": "headwater.flow.determinism",
    "length": "headwater.mapreduce.windows",
    "open": "headwater.store",
    "reduce_job": "headwater.reduce.run",
    "time": "headwater.mapreduce.windows",
    "to_kafka": "headwater.capture.kafka_sink",
    "to_spark": "headwater.query",
}
"""Imported when first asked for: Spark's workers import this package and need none of it."""


def __getattr__(name: str) -> Any:
    if name == "mapreduce":  # a package that can be called
        return import_module("headwater.mapreduce")
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_WHERE[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
