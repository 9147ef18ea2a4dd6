"""What the capture layer hands to a store: a flow's registration, then one batch after another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    import duckdb
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    Resolve = Callable[
        [duckdb.DuckDBPyConnection, str, npt.NDArray[np.int64]], Mapping[str, pa.Table]
    ]

ID = "__hw_id"
TIME = "__hw_time"
CONTENT = "__hw_content"
SEQ = "__hw_seq"
BASE = "__hw_base"


@dataclass(frozen=True, slots=True)
class SourceRegistration:
    """A source as it is kept in the store: its definition (JSON-able) and its columns."""

    name: str
    definition: Mapping[str, Any]
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class SinkRegistration:
    """A sink as it is kept in the store; `definition["sources"]` may name the sources it reads."""

    name: str
    definition: Mapping[str, Any]
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class FlowRegistration:
    """A flow, run as the streaming query `query_id`, with everything it reads and writes."""

    flow: str
    capture: str
    query_id: str
    checkpoint: str
    fingerprint: str
    definition: Mapping[str, Any]
    sources: tuple[SourceRegistration, ...]
    sinks: tuple[SinkRegistration, ...]
    program: bytes | None = None
    """The flow itself, for replays in other processes."""


@dataclass(frozen=True, slots=True)
class ResultSet:
    """One sink's part of a batch.

    `rows` has `__hw_id` (int64), `__hw_time` (timestamp, nullable), then the sink's own columns;
    `origins` has, by source, one list<int64> or int64 per row: its provenance set (empty when
    nothing is captured). `unique` promises that no result id ever comes twice.
    """

    rows: pa.Table
    origins: Mapping[str, pa.ChunkedArray] = field(default_factory=dict)
    unique: bool = False
    intervals: Mapping[str, tuple[pa.ChunkedArray, pa.ChunkedArray]] = field(default_factory=dict)
    """By source, the least and greatest position in each row's provenance, where captured so."""


class Vertices(NamedTuple):
    """Records of one source that are new in the graph; times in microseconds."""

    ids: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class GraphChanges:
    """What a batch adds to the live graph beside its results and edges, by source."""

    vertices: Mapping[str, Vertices] = field(default_factory=dict)
    labels: Mapping[str, npt.NDArray[np.int64]] = field(default_factory=dict)


class Graph(Protocol):
    """A live graph, which is asked within a batch's transaction what the batch adds to it."""

    def changes(
        self,
        reached: Mapping[str, npt.NDArray[np.int64]],
        known: Callable[[str, npt.NDArray[np.int64]], npt.NDArray[np.int64]],
        *,
        last: bool,
    ) -> GraphChanges:
        """The vertices and labels, given the records that the batch has edges to, by source."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch of one query: everything that its transaction writes."""

    query_id: str
    batch: int
    watermark: datetime | None = None
    results: Mapping[str, ResultSet] = field(default_factory=dict)
    records: Mapping[str, pa.Table] = field(default_factory=dict)
    files: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    arrivals: Mapping[str, Sequence[tuple[str, int]]] = field(default_factory=dict)
    """By source, the files that the batch read: address and time in milliseconds."""
    graph: Graph | None = None
    last: bool = False
    """Whether the flow is finished with this batch: no other comes after it."""
    resolve: Resolve | None = None
    """For sinks without captured sets: finds them within the transaction."""


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit wrote; `held` when the store had the batch already and nothing was written."""

    seq: int
    held: bool
    result_ids: dict[str, pa.Int64Array]
    results: int
    edges: int
    records: int
    vertices: int = 0
    labels: int = 0
