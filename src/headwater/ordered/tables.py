"""Arrow tables as bytes: what travels through Spark's shuffle and lies in its state store."""

from __future__ import annotations

import pyarrow as pa

_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


def packed(table: pa.Table, *, compress: bool = False) -> bytes:
    """A table as bytes."""
    out = pa.BufferOutputStream()
    options = _COMPRESSED if compress else None
    with pa.ipc.new_stream(out, table.schema, options=options) as writer:
        writer.write_table(table)
    content: bytes = out.getvalue().to_pybytes()
    return content


def unpacked(content: bytes) -> pa.Table:
    """The table that some bytes hold."""
    with pa.ipc.open_stream(content) as reader:
        return reader.read_all()


def packed_state(state: dict[str, pa.Table]) -> bytes:
    """Several tables by name as bytes."""
    parts = {"name": list(state), "table": [packed(t, compress=True) for t in state.values()]}
    return packed(pa.table(parts, schema=_PARTS))


def unpacked_state(content: bytes | None) -> dict[str, pa.Table]:
    """The tables that some bytes hold, none if there are none."""
    if not content:
        return {}
    parts = unpacked(content)
    names, tables = parts["name"].to_pylist(), parts["table"].to_pylist()
    return {name: unpacked(table) for name, table in zip(names, tables, strict=True)}


_PARTS = pa.schema([("name", pa.string()), ("table", pa.large_binary())])
