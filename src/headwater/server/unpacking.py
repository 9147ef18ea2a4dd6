"""Arrow as it is sent: how much it holds once it is unpacked, told before it is.

Buffers may be compressed, and a few bytes then be gigabytes. Each says its length before its bytes;
which buffers there are, a message says in its head, a flatbuffer of Arrow's own format. Of it only
what is needed is read here, with every place checked, as others wrote it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator

_DICTIONARY, _BATCH = 2, 3
"""Kinds of messages that have buffers."""
_HEAD_TYPE, _HEAD = 1, 2
_DATA = 1
"""Of a dictionary: its batch."""
_BUFFERS, _COMPRESSION = 2, 3
"""Of a batch."""
_PLAIN = -1
"""The length that a buffer says which was left as it was."""


def unpacked(body: bytes) -> int:
    """The bytes of all buffers of an IPC stream, after decompression.

    >>> out = pa.BufferOutputStream()
    >>> rows = pa.table({"text": ["x" * 1_000_000]})
    >>> options = pa.ipc.IpcWriteOptions(compression="zstd")
    >>> with pa.ipc.new_stream(out, rows.schema, options=options) as stream:
    ...     stream.write_table(rows)
    >>> len(out.getvalue()) < 2_000 < 1_000_000 < unpacked(out.getvalue().to_pybytes())
    True
    """
    total = 0
    reader = pa.MessageReader.open_stream(pa.py_buffer(body))
    for message in reader:
        try:
            total += _size(message.metadata.to_pybytes(), message.body)
        except (struct.error, IndexError) as error:
            raise ValueError("a message of the Arrow stream is damaged") from error
    return total


def written_out(rows: pa.RecordBatch) -> int:
    """The bytes that a batch may have once its dictionaries are written out, at most.

    >>> written_out(
    ...     pa.record_batch({"k": pa.array(["abcdef"] * 1_000).dictionary_encode()})
    ... ) >= 6_000
    True
    """
    return sum(_bytes(column) for column in rows.columns)


def _bytes(column: pa.Array) -> int:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return len(column) * _most(column.dictionary)
    if pa.types.is_run_end_encoded(kind):
        return len(column) * _most(column.values)
    if pa.types.is_struct(kind):
        return sum(_bytes(column.field(n)) for n in range(kind.num_fields))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _bytes(column.values) + len(column)
    return int(column.nbytes)


def _most(values: pa.Array) -> int:
    """The bytes that one of some values has at most."""
    kind = values.type
    if pa.types.is_primitive(kind):
        return int(-(-kind.bit_width // 8))
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary)
    if any(is_kind(kind) for is_kind in (*texts, pa.types.is_large_binary)):
        return int(pc.max(pc.binary_length(values)).as_py() or 0)
    return int(values.nbytes)


def _size(head: bytes, body: pa.Buffer | None) -> int:
    message = _at(head, 0)
    kind = _field(head, message, _HEAD_TYPE)
    place = _field(head, message, _HEAD)
    if kind is None or place is None or body is None:
        return 0
    table = place + _unsigned(head, place)
    if head[kind] == _DICTIONARY:
        inner = _field(head, table, _DATA)
        if inner is None:
            return 0
        table = inner + _unsigned(head, inner)
    elif head[kind] != _BATCH:
        return 0
    if _field(head, table, _COMPRESSION) is None:
        return int(body.size)
    return sum(_lengths(head, table, body))


def _lengths(head: bytes, table: int, body: pa.Buffer) -> Iterator[int]:
    """The lengths of compressed buffers."""
    place = _field(head, table, _BUFFERS)
    if place is None:
        return
    vector = place + _unsigned(head, place)
    for number in range(_unsigned(head, vector)):
        offset, length = struct.unpack_from("<qq", head, vector + 4 + 16 * number)
        if length == 0:
            continue
        if offset < 0 or length < 8 or offset + length > body.size:
            raise ValueError("a buffer of the Arrow stream lies beyond its end")
        (told,) = struct.unpack("<q", body[offset : offset + 8].to_pybytes())
        if told < _PLAIN:
            raise ValueError("a buffer of the Arrow stream has a length below zero")
        yield length if told == _PLAIN else told


def _unsigned(data: bytes, place: int) -> int:
    if place < 0:
        raise IndexError
    (value,) = struct.unpack_from("<I", data, place)
    return int(value)


def _at(data: bytes, place: int) -> int:
    return place + _unsigned(data, place)


def _field(data: bytes, table: int, number: int) -> int | None:
    """Where a field of a flatbuffer's table is; None if it is absent."""
    (back,) = struct.unpack_from("<i", data, table)
    known = table - back
    if known < 0:
        raise IndexError
    (size,) = struct.unpack_from("<H", data, known)
    entry = 4 + 2 * number
    if entry + 2 > size:
        return None
    (offset,) = struct.unpack_from("<H", data, known + entry)
    return table + offset if offset else None
