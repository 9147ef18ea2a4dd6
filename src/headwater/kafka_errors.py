"""What goes wrong between Spark and Kafka, in one line that says what to do."""

from __future__ import annotations

import re

_ABSENT = "Failed to find data source: kafka"
_LOST = re.compile(
    r"data may have been (?:lost|missed)|KAFKA_DATA_LOSS|OffsetOutOfRangeException|"
    r"Cannot fetch offset|were aged out|Fetch(?:ing)? position .* is out of range",
    re.IGNORECASE,
)
_SILENT = re.compile(
    r"Timed out waiting for a node assignment|Call: (?:describeTopics|listOffsets)|"
    r"No resolvable bootstrap urls|Failed to construct kafka consumer|"
    r"Failed to create new KafkaAdminClient|org\.apache\.kafka\.common\.errors\.TimeoutException",
)
_UNKNOWN = re.compile(r"UnknownTopicOrPartition")

LOST = (
    "records of its topic were deleted before they were read: by retention, or as the topic was "
    "made anew; they can't be had again: let the topic keep records for longer, and start with a "
    "new store and checkpoint"
)


def connector() -> str:
    """How Spark gets its connector to Kafka."""
    import pyspark

    package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
    return (
        "Spark's connector to Kafka is missing: set HEADWATER_KAFKA_JARS to a folder with its "
        f"jars, or start Spark with spark.jars.packages={package} (docs/kafka.md)"
    )


def explained(error: BaseException) -> str | None:
    """What an error means that came from Kafka; None if it came from elsewhere."""
    text = str(error)
    if _ABSENT in text:
        return connector()
    if "kafka" not in text.lower():
        return None
    if _LOST.search(text):
        return LOST
    if _UNKNOWN.search(text):
        return "a topic of its sources does not exist: make it first, or correct 'subscribe'"
    if _SILENT.search(text):
        return (
            "the broker of Kafka does not answer: see that it runs and that "
            "kafka.bootstrap.servers is right; the flow goes on from here when it is started again"
        )
    return None
