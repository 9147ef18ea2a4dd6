"""Records of topics read again, by their ids: Spark reads the messages at their places anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headwater.errors import UnknownId
from headwater.flow.kafka import FORMAT, OFFSET_BITS, PARTITION_BITS, TOPIC_BITS, Topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headwater.lowering.kafka import Span
    from headwater.store.catalog import Source

Ids = npt.NDArray[np.int64]

GAP = 10_000
"""Messages between two wanted ones that are read with them rather than by a read of their own."""
MOST_READS = 32


def in_topics(source: Source) -> bool:
    """Whether a source's records are messages of topics, which can be read again."""
    return source.definition.get("format") == FORMAT and "schema_json" in source.definition


def topics_of(source: Source) -> Topics:
    """The topics of a source, as the store knows them."""
    from pyspark.sql.types import StructType

    schema = StructType.fromJson(source.definition["schema_json"])
    return Topics(source.name, schema, source.definition.get("options") or {})


def spans_of(topics: Topics, ids: Ids) -> list[Span]:
    """The stretches of partitions that hold the messages with these ids."""
    spans: list[Span] = []
    shift = PARTITION_BITS + TOPIC_BITS
    rest = ids & ((1 << shift) - 1)
    for place in np.unique(rest):
        number, partition = int(place) >> PARTITION_BITS, int(place) & ((1 << PARTITION_BITS) - 1)
        if number >= len(topics.names):
            continue
        offsets = np.unique(ids[rest == place] >> shift)
        offsets = offsets[offsets >= 0]
        gaps = np.diff(offsets)
        breaks = np.flatnonzero(gaps > GAP)
        # The widest gaps are left out, the others read along.
        breaks = np.sort(breaks[np.argsort(gaps[breaks])[-(MOST_READS - 1) :]])
        parts = np.split(offsets, breaks + 1)
        spans.extend(
            (topics.names[number], partition, int(part[0]), int(part[-1]) + 1)
            for part in parts
            if len(part)
        )
    return spans


def frame(source: Source, ids: Ids | None, id_name: str, time_name: str) -> DataFrame:
    """A source's records: id, time, own columns; at least those with some ids, or all there are."""
    from pyspark.sql import functions as F

    from headwater.columns import identity_hash, quoted
    from headwater.lowering import kafka
    from headwater.session import adopt_or_start

    topics, spark = topics_of(source), adopt_or_start()
    spans = None if ids is None or source.id["kind"] != "offset" else spans_of(topics, ids)
    if spans:
        raw = kafka.again(spark, topics, spans)
    else:
        raw = kafka.everything(spark, topics)
        raw = raw if spans is None else raw.limit(0)
    rows = kafka.decoded(raw, topics)
    match source.id["kind"]:
        case "offset":
            key = kafka.place_column(topics)
        case "column":
            key = quoted(source.id_columns[0]).cast("bigint")
        case _:
            key = identity_hash(rows.schema[name] for name in source.id_columns)
    moment = source.definition.get("event_time")
    time = F.lit(None) if moment is None else quoted(str(moment))
    own = map(quoted, topics.schema.fieldNames())
    return rows.select(key.alias(id_name), time.cast("timestamp").alias(time_name), *own)


def resolved(source: Source, value: tuple[Any, ...]) -> int:
    """The id of the record at a place: (topic, partition, offset), or without the only topic."""
    names = topics_of(source).names
    topic, partition, offset = value if len(value) == 3 else (names[0], *value, None)[:3]
    if len(value) not in (2, 3) or (len(value) == 2 and len(names) > 1):
        raise UnknownId(
            f"a place in source {source.name!r} is (topic, partition, offset), not {value!r}"
        )
    if topic not in names:
        raise UnknownId(
            f"source {source.name!r} has no topic {topic!r}; it has: {', '.join(names)}"
        )
    try:
        numbers = int(partition), int(offset)
    except (TypeError, ValueError):
        numbers = -1, -1
    if not 0 <= numbers[0] < 1 << PARTITION_BITS or not 0 <= numbers[1] < 1 << OFFSET_BITS:
        raise UnknownId(f"source {source.name!r} has no partition and offset {value[-2:]!r}")
    shift = PARTITION_BITS + TOPIC_BITS
    return numbers[1] << shift | names.index(topic) << PARTITION_BITS | numbers[0]
