"""Names of datasets by the rules of OpenLineage: the namespace is the data source, the name in it.

The two form a URI, so that whoever else tells of the same data names it alike.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headwater.flow.flow import Flow
    from headwater.streams import Streams

DATASETS = "datasets"
"""In what a store knows of a source or sink: the names of what it reads, or is handed on to."""
_SCHEMES = {"s3a": "s3", "s3n": "s3"}
"""Spark's names of connectors, by what they connect to."""
_KEYS = ("s3", "gs", "wasbs", "wasb")
"""Where a path is a key, without a slash before it."""
_KAFKA_PORT = 9092


@dataclass(frozen=True, slots=True, order=True)
class Dataset:
    """What OpenLineage calls a dataset."""

    namespace: str
    name: str


def of_source(store: str, flow: str, name: str, known: Mapping[str, Any]) -> tuple[Dataset, ...]:
    """What a source reads; where that has no name of its own, the source is one of its store's.

    >>> of_source("/prov", "traffic", "reports", {"format": "parquet", "path": "/data/lr"})
    (Dataset(namespace='file', name='/data/lr'),)
    >>> of_source("/prov", "traffic", "reports", {"format": "rate"})
    (Dataset(namespace='headwater:///prov', name='traffic/reports'),)
    """
    if known.get(DATASETS):
        return tuple(Dataset(**one) for one in known[DATASETS])
    options = {key.lower(): value for key, value in (known.get("options") or {}).items()}
    if known.get("format") == "kafka" and (topics := _topics(options)):
        return tuple(of_topic(options.get("kafka.bootstrap.servers", ""), one) for one in topics)
    if known.get("path"):
        return (of_files(str(known["path"])),)
    return (of_store(store, flow, name),)


def of_sink(store: str, flow: str, name: str, known: Mapping[str, Any]) -> tuple[Dataset, ...]:
    """What has the results of a sink: the store, and what they are handed on to.

    >>> for one in of_sink("/prov", "traffic", "stopped", {"format": "csv", "path": "s3a://a/b/"}):
    ...     print(one.namespace, one.name)
    headwater:///prov traffic/stopped
    s3://a b
    """
    own = of_store(store, flow, name)
    if known.get(DATASETS):
        return (own, *(Dataset(**one) for one in known[DATASETS]))
    if known.get("format") == "kafka" and known.get("topic"):
        return (own, of_topic(str(known.get("kafka.bootstrap.servers", "")), str(known["topic"])))
    return (own, of_files(str(known["path"]))) if known.get("path") else (own,)


def of_store(store: str, flow: str, name: str) -> Dataset:
    """A source or sink as its store has it."""
    return Dataset(f"headwater://{os.path.realpath(store)}", f"{flow}/{name}")


def of_files(path: str) -> Dataset:
    """Files, here or elsewhere.

    >>> of_files("s3a://lake/reports/2025")
    Dataset(namespace='s3://lake', name='reports/2025')
    >>> of_files("hdfs://node:8020/reports")
    Dataset(namespace='hdfs://node:8020', name='/reports')
    """
    parsed = urlparse(path)
    scheme = _SCHEMES.get(parsed.scheme, parsed.scheme)
    if not scheme or (scheme != "file" and "://" not in path):
        return Dataset("file", os.path.abspath(path))
    place = (parsed.path.rstrip("/") or "/") if scheme not in _KEYS else parsed.path.strip("/")
    # A container stands before the `@` of some; a password must not.
    user, at, host = parsed.netloc.rpartition("@")
    authority = f"{user.partition(':')[0]}{at}{host}"
    return Dataset(f"{scheme}://{authority}" if authority else scheme, place or "/")


def of_topic(servers: str, topic: str) -> Dataset:
    """A topic of Kafka, by the first of its brokers.

    >>> of_topic("SSL://one:9093,two:9093", "reports")
    Dataset(namespace='kafka://one:9093', name='reports')
    """
    first = servers.split(",")[0].strip().rpartition("://")[2] or "localhost"
    host, colon, port = first.rpartition(":")
    if not colon or not port.isdigit():
        host, port = first, str(_KAFKA_PORT)
    return Dataset(f"kafka://{host}:{port}", topic)


def of_stream(streams: Streams, name: str) -> Dataset:
    """A named stream: its topic if it is on Kafka, else by the folder of the registry."""
    from headwater.streams.kafka_client import PREFIX, Settings

    declared = streams.declaration(name)
    if declared.log.startswith(PREFIX):
        settings = Settings.of(declared)
        return of_topic(settings.servers, settings.topic)
    return Dataset(f"headwater://{streams.folder}", name)


def note_streams(flow: Flow, streams: Streams) -> None:
    """Note the names of the streams that a deployed flow reads and publishes."""
    for note in flow.notes.values():
        if note.get("streams"):
            note[DATASETS] = [asdict(_named(streams, one)) for one in note["streams"]]


def _named(streams: Streams, name: str) -> Dataset:
    try:
        return of_stream(streams, name)
    except HeadwaterError:  # whoever reads it will say so; here only its name is wanted
        return Dataset(f"headwater://{streams.folder}", name)


def _topics(options: Mapping[str, str]) -> Iterable[str]:
    if "subscribe" in options:
        return [one for topic in options["subscribe"].split(",") if (one := topic.strip())]
    if "assign" in options:
        return list(json.loads(options["assign"]))
    return [options["subscribepattern"]] if "subscribepattern" in options else []
