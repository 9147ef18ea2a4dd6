"""A record's id from the value that the user knows: Spark's xxhash64, or a place in a file."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import xxhash

from headwater.errors import UnknownId
from headwater.store import topics
from headwater.store.files import ROW_BITS, numbered

if TYPE_CHECKING:
    from headwater.store.catalog import Source

SEED = 42
Query = Callable[..., pa.Table]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INTS = ("tinyint", "smallint", "int", "byte", "short", "integer")
_LONGS = ("bigint", "long")


def xxhash64(values: Sequence[object], types: Sequence[str]) -> int:
    """Spark's `xxhash64` of columns with these values and Spark types.

    >>> xxhash64(["Spark", 7], ["string", "int"])
    4916306765815919937
    """
    seed = SEED
    for value, kind in zip(values, types, strict=True):
        if value is not None:
            seed = xxhash.xxh64_intdigest(_bytes(value, kind.strip().lower()), seed=seed)
    return seed - (1 << 64) if seed >= 1 << 63 else seed


def identity_hash(values: Sequence[object], types: Sequence[str]) -> int:
    """The id of a record by some of its columns: which are null, then their values."""
    nulls = [value is None for value in values]
    return xxhash64([*nulls, *values], ["boolean"] * len(nulls) + list(types))


def resolved(source: Source, value: object, query: Query) -> int:
    """The id (a bigint) of the record that `value` names: the id itself, or the user's value."""
    kind, columns = source.id["kind"], source.id_columns
    if isinstance(value, bool) or value is None:
        raise _no_id(source, value)
    if kind == "offset" and isinstance(value, tuple) and len(value) > 1:
        return topics.resolved(source, value)
    if kind == "position" and isinstance(value, tuple):
        return _position(source, value, query)
    if hasattr(value, "__index__"):
        return _bigint(source, value.__index__())
    if kind in ("hash", "content"):
        given = value if isinstance(value, tuple) else (value,)
        if len(given) != len(columns):
            raise UnknownId(
                f"an id of source {source.name!r} has {len(columns)} values "
                f"({', '.join(columns)}), not {len(given)}"
            )
        types = source.id_types
        try:
            return identity_hash(given, types)
        except (TypeError, ValueError, ArithmeticError, struct.error) as error:
            wanted = ", ".join(f"{c} {t}" for c, t in zip(columns, types, strict=False))
            raise UnknownId(
                f"{value!r} can't be an id of source {source.name!r} ({wanted}): {error}"
            ) from error
    if isinstance(value, tuple) and len(value) == 1:
        return resolved(source, value[0], query)
    if isinstance(value, str):
        try:
            return _bigint(source, int(value))
        except ValueError:
            pass
    raise _no_id(source, value)


def _bigint(source: Source, value: int) -> int:
    if not -(1 << 63) <= value < 1 << 63:
        raise _no_id(source, value)
    return value


def _no_id(source: Source, value: object) -> UnknownId:
    return UnknownId(f"{value!r} can't be an id of source {source.name!r}; ids are whole numbers")


def _position(source: Source, value: tuple[Any, ...], query: Query) -> int:
    if len(value) != 2:
        raise UnknownId(f"a place in source {source.name!r} is (file name, row), not {value!r}")
    name, row = str(value[0]), int(value[1])
    files = numbered(source, query)
    exact = [key for key, path in files.items() if path == name]
    exact = exact or [key for key, path in files.items() if path.endswith("/" + name.lstrip("/"))]
    if len(exact) != 1:
        what = "has no file" if not exact else f"has {len(exact)} files"
        raise UnknownId(f"source {source.name!r} {what} {name!r}; give its full path")
    if not 0 <= row < 1 << ROW_BITS:
        raise UnknownId(f"{PurePosixPath(name).name} has no row {row}")
    return exact[0] << ROW_BITS | row


def _bytes(value: Any, type: str) -> bytes:
    # As Spark hashes each type: whole numbers up to int as 4 bytes, longer ones as 8.
    if type in _INTS:
        return struct.pack("<i", int(value))
    if type == "boolean":
        return struct.pack("<i", _boolean(value))
    if type in _LONGS:
        return struct.pack("<q", int(value))
    if type in ("timestamp", "timestamp_ntz", "timestamp_ltz"):
        return struct.pack("<q", _micros(value))
    if type == "date":
        return struct.pack("<i", (_date(value) - _EPOCH.date()).days)
    if type in ("float", "real"):
        return struct.pack("<f", float(value) + 0.0)
    if type == "double":
        return struct.pack("<d", float(value) + 0.0)
    if type.startswith("decimal"):
        return _decimal(value, type)
    if type == "binary":
        return value.encode() if isinstance(value, str) else bytes(value)
    if type == "string" or type.startswith(("varchar", "char", "string ")):
        if not isinstance(value, str):
            raise TypeError(f"{value!r} is not text")
        return value.encode()
    raise TypeError(f"a {type} column can't be looked up by value; give the id itself")


def _boolean(value: object) -> int:
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return int(value.lower() == "true")
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is not a boolean")
    return int(value)


def _micros(value: object) -> int:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime):
        raise TypeError(f"{value!r} is not a time")
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _date(value: object) -> date:
    day = date.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(day, date) or isinstance(day, datetime):
        raise TypeError(f"{value!r} is not a date")
    return day


def _decimal(value: Any, type: str) -> bytes:
    inside = type.partition("(")[2].rstrip(")") or "10,0"
    precision, _, scale = inside.partition(",")
    scaled = Decimal(str(value)).scaleb(int(scale or 0))
    unscaled = int(scaled)
    if scaled != unscaled:
        raise ValueError(f"{value} has more than {scale or 0} decimal places")
    if int(precision) <= 18:
        return struct.pack("<q", unscaled)
    # java.math.BigInteger.toByteArray: big-endian, the fewest bytes that hold the sign.
    length = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return unscaled.to_bytes(length, "big", signed=True)
