"""One Parquet file of a log: its events, and in its footer who published them under what keys."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.streams.errors import StreamError
from headwater.streams.index import Commit
from headwater.streams.log import Entry, Key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_META = b"headwater"

OPTIONS = {"compression": "snappy", "row_group": "100000", "sync": "true"}
"""What can be set of the files of a stream, and what it is by default.

With `sync=false` a killed process loses nothing still, but a power cut may.
"""


class Options:
    """How the files of a stream are written."""

    def __init__(self, stream: str, given: Mapping[str, str]) -> None:
        unknown = set(given) - set(OPTIONS)
        if unknown:
            raise StreamError(
                f"option {min(unknown)!r} of stream {stream!r} is none of {', '.join(OPTIONS)}"
            )
        options = {**OPTIONS, **given}
        self.compression = options["compression"]
        if self.compression not in ("none", "snappy", "gzip", "zstd", "lz4"):
            raise StreamError(
                f"compression={self.compression!r} of stream {stream!r} is none of none, snappy, "
                "gzip, zstd, lz4"
            )
        if not options["row_group"].isdigit() or not int(options["row_group"]):
            raise StreamError(f"row_group={options['row_group']!r} is not a number of events")
        self.row_group = int(options["row_group"])
        if options["sync"] not in ("true", "false"):
            raise StreamError(f"sync={options['sync']!r} of stream {stream!r}: give true or false")
        self.sync = options["sync"] == "true"


def write(path: Path, entries: Sequence[Entry], options: Options) -> None:
    """Write the events of entries, safe on disk when this returns."""
    told = [_told(entry) for entry in entries]
    table = pa.concat_tables([entry.table for entry in entries])
    with path.open("wb") as out:
        with pq.ParquetWriter(
            out, table.schema, compression=options.compression, store_schema=False
        ) as writer:
            writer.write_table(table, row_group_size=options.row_group)
            writer.add_key_value_metadata({_META: json.dumps(told, separators=(",", ":"))})
        out.flush()
        if options.sync:
            os.fsync(out.fileno())


def commit_of(path: Path, offset: int) -> Commit | None:
    """The commit that a file is, by its footer; None without the file."""
    try:
        at = path.stat().st_mtime_ns // 1_000_000
        metadata = pq.read_metadata(path)
    except FileNotFoundError:
        return None
    told = json.loads((metadata.metadata or {}).get(_META, b"[]"))
    keys = tuple(Key(*entry["key"]) for entry in told if "key" in entry)
    return Commit(offset, metadata.num_rows, at, keys)


def producers(path: Path) -> list[dict[str, Any]]:
    """Who published a file's events, in order: `events`, `producer`, `version`, `key`."""
    metadata = pq.read_metadata(path).metadata or {}
    told: list[dict[str, Any]] = json.loads(metadata.get(_META, b"[]"))
    return told


def read(path: Path, schema: pa.Schema, *, last: bool = False) -> pa.Table:
    """The events of a file, or its last one."""
    with pq.ParquetFile(path) as file:
        rows = file.read_row_group(file.num_row_groups - 1) if last else file.read()
    if last:
        rows = rows.slice(rows.num_rows - 1)
    # Not all that Arrow knows of types is in the file: Spark's own have the same.
    return rows.replace_schema_metadata(None).cast(schema)


def _told(entry: Entry) -> dict[str, Any]:
    producer, key = entry.producer, entry.key
    told: dict[str, Any] = {
        "events": entry.table.num_rows,
        "producer": f"{producer.kind} {producer.name}",
    }
    if producer.version is not None:
        told["version"] = producer.version
    if key is not None:
        told["key"] = [key.text, key.number]
    return told
