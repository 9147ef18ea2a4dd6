"""`Flow.source`: its parameters checked, its ids and its keeping decided."""

from __future__ import annotations

import glob
import os
from typing import TYPE_CHECKING, Any, get_args

from pyspark.sql.types import (
    ByteType,
    IntegerType,
    LongType,
    ShortType,
    StructType,
    TimestampType,
)

from headwater.errors import FlowError
from headwater.flow import kafka
from headwater.flow.nodes import Identity, Keep, Source
from headwater.flow.windows import microseconds
from headwater.names import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

FILE_FORMATS = ("parquet", "csv", "json", "orc", "text")
_INTEGERS = (ByteType, ShortType, IntegerType, LongType)


def source_node(
    name: str,
    site: str,
    *,
    df: DataFrame | None,
    format: str | None,
    path: str | None,
    schema: StructType | None,
    options: Mapping[str, Any] | None,
    stream: bool,
    event_time: str | None,
    watermark: str | None,
    id: str | Sequence[str] | None,
    keep: Keep | None,
) -> Source:
    """The node of a source, or an error that says which parameter is wrong."""
    where = f"source {name!r} at {site}"
    if df is None and format == kafka.FORMAT:
        if path or not stream:
            raise FlowError(
                f"{where}: a topic has no path= and is read as a stream; available_now=True stops "
                "the flow at its end"
            )
        named = (*([event_time] if event_time else ()), *_id_columns(id))
        schema, options = kafka.declared(where, schema, options or {}, named)
    if df is not None:
        given = [n for n, v in (("format", format), ("path", path), ("schema", schema)) if v]
        if given or options:
            raise FlowError(
                f"{where}: give either df= or {'/'.join(given or ['options'])}=, not both"
            )
        shape, streaming = df.schema, bool(df.isStreaming)
    else:
        if format is None:
            raise FlowError(f"{where}: give df=, or format= and schema= (and path= for files)")
        if format in FILE_FORMATS:
            _require_path(where, path, stream=stream)
        if schema is None:
            raise FlowError(_no_schema(where, format, path))
        shape, streaming = schema, stream
    _require_columns(where, shape, event_time, watermark, id)
    reserved = [f for f in shape.fieldNames() if f.startswith(PREFIX)]
    if reserved:
        raise FlowError(
            f"{where}: column {reserved[0]!r} has the prefix __hw_, which is reserved; rename it"
        )
    # Rows of other formats have no number, and files elsewhere are not listed here.
    positional = df is None and format == "parquet" and "://" not in (path or "")
    identity = _identity(shape, id, positional=positional)
    if df is None and format == kafka.FORMAT and id is None:
        identity = Identity("offset", ())
    return Source(
        step=name,
        site=site,
        schema=shape,
        streaming=streaming,
        identity=identity,
        event_time=event_time,
        watermark=watermark,
        keep=_keep(where, keep, rereadable=df is None and format in FILE_FORMATS),
        format=format,
        path=os.path.abspath(path)
        if path and format in FILE_FORMATS and "://" not in path
        else path,
        options=tuple(sorted((k, str(v)) for k, v in (options or {}).items())),
        df=df,
    )


def _no_schema(where: str, format: str, path: str | None) -> str:
    """What to say where a stream's columns are not: Spark would only find them out by reading."""
    text = f"{where}: give df=, or format= and schema=, such as schema='id bigint, at timestamp'"
    if format not in ("parquet", "orc"):
        return text
    return f"{text}; these files know their own: schema=flow.spark.read.{format}({path!r}).schema"


def _require_path(where: str, path: str | None, *, stream: bool) -> None:
    if path is None:
        raise FlowError(f"{where}: files need path=")
    if stream and os.path.isfile(path):
        raise FlowError(
            f"{where}: {path!r} is one file, and a stream is a folder that gets more; give the "
            "folder, or stream=False to read it once"
        )
    if "://" in path or glob.glob(path):
        return
    if stream:
        raise FlowError(f"{where}: there is no {path!r}; make the directory before the flow starts")
    raise FlowError(f"{where}: there is no {path!r} in {os.getcwd()}; check path=")


def _require_columns(
    where: str,
    schema: StructType,
    event_time: str | None,
    watermark: str | None,
    id: str | Sequence[str] | None,
) -> None:
    has = ", ".join(schema.fieldNames())
    if event_time is not None:
        if event_time not in schema.fieldNames():
            raise FlowError(
                f"{where}: no column {event_time!r} for event_time=; the schema has {has}"
            )
        kind = schema[event_time].dataType
        if not isinstance(kind, TimestampType):
            raise FlowError(
                f"{where}: event_time column {event_time!r} is {kind.simpleString()}, not timestamp"
            )
    if watermark is not None:
        if event_time is None:
            raise FlowError(f"{where}: watermark= needs event_time=")
        microseconds(watermark)
    for column in _id_columns(id):
        if column not in schema.fieldNames():
            raise FlowError(f"{where}: no column {column!r} for id=; the schema has {has}")


def _id_columns(id: str | Sequence[str] | None) -> tuple[str, ...]:
    if id is None:
        return ()
    return (id,) if isinstance(id, str) else tuple(id)


def _identity(schema: StructType, id: str | Sequence[str] | None, *, positional: bool) -> Identity:
    columns = _id_columns(id)
    if not columns:
        return Identity("position" if positional else "content", ())
    if len(columns) == 1 and isinstance(schema[columns[0]].dataType, _INTEGERS):
        return Identity("column", columns)
    return Identity("hash", columns)


def _keep(where: str, keep: Keep | None, *, rereadable: bool) -> Keep:
    if keep is None:
        # Files can be read again; anything else is gone once it has passed.
        return "none" if rereadable else "contributing"
    if keep not in get_args(Keep):
        raise FlowError(f"{where}: keep={keep!r} is not one of {', '.join(get_args(Keep))}")
    return keep
