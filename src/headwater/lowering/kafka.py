"""Messages of Kafka as rows: decoded by Spark's own functions, with a place and an id.

A message that can't be decoded is no record; it is in the rows of `poisoned` instead.
"""

from __future__ import annotations

import json
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from headwater.columns import quoted
from headwater.flow.kafka import (
    FAIL,
    FORMAT,
    OFFSET_BITS,
    PARTITION_BITS,
    PREFIX,
    TOPIC_BITS,
    Topics,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.flow.nodes import Source

TOPIC, PARTITION, OFFSET = "__hw_topic", "__hw_partition", "__hw_offset"
PLACE = (TOPIC, PARTITION, OFFSET)
_TEXT, _BAD = "__hw_text", "__hw_bad"
_OFFSET_SHIFT = PARTITION_BITS + TOPIC_BITS
LETTER = ("topic", "partition", "offset", "timestamp", "key", "value")
"""What is kept of a message that can't be decoded; the reason comes after it."""

Span = tuple[str, int, int, int]
"""Messages of a partition: its topic, its number, the first offset and the one after the last."""


def in_topics(node: Source) -> bool:
    """Whether a source's records are messages of topics that Headwater reads."""
    return node.df is None and node.format == FORMAT


def stream(spark: SparkSession, topics: Topics) -> DataFrame:
    """The messages of topics as they come."""
    return spark.readStream.format(FORMAT).options(**topics.streaming).load()


def again(spark: SparkSession, topics: Topics, spans: Sequence[Span]) -> DataFrame:
    """The messages at some places, read once more."""
    return reduce(DataFrame.union, [_span(spark, topics, layer) for layer in layers(spans)])


def everything(spark: SparkSession, topics: Topics) -> DataFrame:
    """All messages that the topics have now."""
    ends = {"startingOffsets": "earliest", "endingOffsets": "latest"}
    where = {"subscribe": ",".join(topics.names)}
    return spark.read.format(FORMAT).options(**topics.connecting, **where, **ends).load()


def layers(spans: Sequence[Span]) -> list[list[Span]]:
    """Spans in groups with each partition once, as a read of Spark's takes them.

    >>> layers([("t", 0, 0, 5), ("t", 1, 2, 3), ("t", 0, 9, 10)])
    [[('t', 0, 0, 5), ('t', 1, 2, 3)], [('t', 0, 9, 10)]]
    """
    found: list[list[Span]] = []
    depth: dict[tuple[str, int], int] = {}
    for span in spans:
        at = depth.get(span[:2], 0)
        depth[span[:2]] = at + 1
        if at == len(found):
            found.append([])
        found[at].append(span)
    return found


def decoded(raw: DataFrame, topics: Topics) -> DataFrame:
    """The records in messages: the source's columns, then the place of each."""
    rows = _parsed(raw, topics)
    sound = _sound(topics)
    if sound is not None:
        if topics.dead_letters == FAIL:
            place = F.concat_ws("/", TOPIC, PARTITION, OFFSET)
            said = F.concat(
                F.lit(f"source {topics.name!r}: message "),
                place,
                F.lit(" (topic/partition/offset) can't be decoded: "),
                _reason(topics),
            )
            sound = F.when(F.coalesce(sound, F.lit(False)), F.lit(True)).otherwise(
                F.raise_error(said).cast("boolean")
            )
        rows = rows.filter(sound)
    return rows.select(*map(quoted, topics.schema.fieldNames()), *PLACE)


def poisoned(raw: DataFrame, topics: Topics) -> DataFrame | None:
    """The messages that can't be decoded, each with the reason; None where all can."""
    sound = _sound(topics)
    if sound is None or topics.dead_letters == FAIL:
        return None
    kept = raw.withColumns({f"__hw_{name}_": F.col(name) for name in LETTER})
    rows = _parsed(kept, topics, keeping=[f"__hw_{name}_" for name in LETTER])
    named = [F.col(f"__hw_{name}_").alias(name) for name in LETTER]
    return rows.filter(~F.coalesce(sound, F.lit(False))).select(
        *named, _reason(topics).alias("reason")
    )


def place_column(topics: Topics) -> Column:
    """A message's place as one number: its offset, then the number of its topic, its partition.

    It is the record's id where no column is, and what intervals and the order of arrival go by.
    """
    number = F.lit(len(topics.names))
    for at, name in enumerate(topics.names):
        number = F.when(F.col(TOPIC) == name, F.lit(at)).otherwise(number)
    fits = (F.col(PARTITION) < (1 << PARTITION_BITS)) & (F.col(OFFSET) < (1 << OFFSET_BITS))
    fits = fits & (number < len(topics.names))
    said = (
        f"source {topics.name!r}: ids have room for {1 << PARTITION_BITS} partitions and offsets "
        f"below 2^{OFFSET_BITS}; give id= a column"
    )
    packed = (
        F.shiftleft(F.col(OFFSET), _OFFSET_SHIFT)
        .bitwiseOR(F.shiftleft(number.cast("bigint"), PARTITION_BITS))
        .bitwiseOR(F.col(PARTITION).cast("bigint"))
    )
    return F.when(fits, packed).otherwise(F.raise_error(F.lit(said)).cast("bigint"))


def place_of(topic: int, partition: int, offset: int) -> int:
    """The same number for a place that is known.

    >>> where(place_of(1, 3, 42))
    (1, 3, 42)
    """
    return offset << _OFFSET_SHIFT | topic << PARTITION_BITS | partition


def where(place: int) -> tuple[int, int, int]:
    """The topic's number, the partition and the offset that such a number means."""
    topic = place >> PARTITION_BITS & ((1 << TOPIC_BITS) - 1)
    return topic, place & ((1 << PARTITION_BITS) - 1), place >> _OFFSET_SHIFT


def _span(spark: SparkSession, topics: Topics, spans: Sequence[Span]) -> DataFrame:
    """A batch of messages, each partition at most once."""
    partitions: dict[str, list[int]] = {}
    first: dict[str, dict[str, int]] = {}
    last: dict[str, dict[str, int]] = {}
    for topic, partition, start, end in spans:
        partitions.setdefault(topic, []).append(partition)
        first.setdefault(topic, {})[str(partition)] = start
        last.setdefault(topic, {})[str(partition)] = end
    places: Mapping[str, object] = {
        "assign": partitions,
        "startingOffsets": first,
        "endingOffsets": last,
    }
    options = {key: json.dumps(value) for key, value in places.items()}
    return spark.read.format(FORMAT).options(**topics.connecting, **options).load()


def _parsed(raw: DataFrame, topics: Topics, keeping: Sequence[str] = ()) -> DataFrame:
    """All messages with the columns of their values, sound or not."""
    kept = [
        F.col("topic").alias(TOPIC),
        F.col("partition").alias(PARTITION),
        F.col("offset").alias(OFFSET),
        *(F.col(name).alias(PREFIX + name) for name in topics.metadata),
        *map(F.col, keeping),
    ]
    if topics.value == "binary":
        return raw.select(*kept, F.col("value").alias(topics.own[0].name))
    text = F.col("value").cast("string")
    if topics.value == "text":
        return raw.select(*kept, text.alias(_TEXT), text.alias(topics.own[0].name))
    schema = StructType([*topics.own.fields, StructField(_BAD, StringType())])
    options = {**topics.json_options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BAD}
    # As rows of a generator the columns are parsed once: a filter on columns of a projection would
    # be pushed below it, and the text parsed for each of the two.
    values = F.inline(F.array(F.from_json(text, schema, options)))
    return raw.select(*kept, text.alias(_TEXT), values)


def _sound(topics: Topics) -> Column | None:
    """Whether a message's value is what the source says; None where it can't be otherwise."""
    text = F.col(_TEXT)
    match topics.value:
        case "binary":
            return None
        case "text":
            return text.isNull() | F.is_valid_utf8(text)
    # Spark's reader takes the first object and passes over what follows it. Before another
    # element of an array, only one whole value has a place.
    whole = F.json_array_length(F.concat(F.lit("["), text, F.lit(",0]"))) == 2
    return text.isNotNull() & F.is_valid_utf8(text) & whole & F.col(_BAD).isNull()


def _reason(topics: Topics) -> Column:
    text = F.col(_TEXT)
    columns = topics.own.simpleString().removeprefix("struct<").removesuffix(">")
    found = F.when(text.isNull(), F.lit("it has no value")).when(
        ~F.is_valid_utf8(text), F.lit("its value is not UTF-8")
    )
    return found.otherwise(F.lit(f"its value is not a JSON object of {columns}"[:500]))
