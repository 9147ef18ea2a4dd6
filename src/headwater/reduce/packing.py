"""Columns of different lengths as bytes, and back: how blocks travel and rest in Spark's state."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

_LZ4 = pa.ipc.IpcWriteOptions(compression="lz4")


def packed(columns: Mapping[str, npt.NDArray[Any] | pa.Array], about: Mapping[str, Any]) -> bytes:
    """Columns of different lengths as bytes: one row, a list for each."""
    lists = {}
    for name, values in columns.items():
        array = values if isinstance(values, pa.Array) else pa.array(values)
        lists[name] = pa.ListArray.from_arrays(pa.array([0, len(array)], pa.int32()), array)
    batch = pa.RecordBatch.from_pydict(lists, metadata={"about": json.dumps(about)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_LZ4) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def unpacked(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `packed` made bytes of: numbers as arrays of NumPy, all else as Arrow's."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        batch = reader.read_next_batch()
    columns: dict[str, Any] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        values = column.flatten()
        plain = pa.types.is_integer(values.type) or pa.types.is_boolean(values.type)
        columns[name] = values.to_numpy(zero_copy_only=False) if plain else values
    return columns, json.loads(batch.schema.metadata[b"about"])
