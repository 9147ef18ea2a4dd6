"""Results to a topic of Kafka: a message for each, with the result's id as key and header."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.capture.write import RESULT_ID
from headwater.errors import FlowError, RunError
from headwater.flow.kafka import FORMAT, SERVERS, Topics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

HEADER = "headwater.origins"
ORIGINS = "__hw_origins_"


@dataclass(frozen=True, slots=True)
class TopicWriter:
    """What `flow.sink(name, frame, write=…)` calls with the results of each batch."""

    topic: str
    connecting: Topics
    origins: int = 0
    """How many ids of records of a source a message has at most."""

    def __call__(self, df: DataFrame, batch: int) -> None:
        """Send a batch: sent again after a crash, its messages have the same keys."""
        from pyspark.sql import functions as F

        from headwater.columns import quoted

        sets = [name for name in df.columns if name.startswith(ORIGINS)]
        own = [quoted(name) for name in df.columns if name not in (RESULT_ID, *sets)]
        key = F.col(RESULT_ID).cast("string")
        header = F.struct(F.lit(RESULT_ID).alias("key"), key.cast("binary").alias("value"))
        headers = [header]
        if sets:
            told = F.to_json(F.struct(*map(self._origin, sets))).cast("binary")
            headers.append(F.struct(F.lit(HEADER).alias("key"), told.alias("value")))
        options = {**self.connecting.connecting, "topic": self.topic, "includeHeaders": "true"}
        df.select(
            key.alias("key"),
            F.to_json(F.struct(*own), {"ignoreNullFields": "false"}).alias("value"),
            F.array(*headers).alias("headers"),
        ).write.format(FORMAT).options(**options).save()

    def _origin(self, name: str) -> Column:
        from pyspark.sql import functions as F

        from headwater.columns import quoted

        first = F.slice(quoted(name), 1, self.origins)
        told = F.struct(F.size(quoted(name)).alias("count"), first.alias("ids"))
        return told.alias(name.removeprefix(ORIGINS))


def require_origins(sink: str, write: object, capture: str) -> None:
    """Refuse origins in messages where a batch's rows do not carry them."""
    if isinstance(write, TopicWriter) and write.origins and capture != "eager":
        raise RunError(
            f"sink {sink!r}: to_kafka(origins={write.origins}) needs the ids with each result, and "
            f"its capture is {capture!r}; leave origins out, or start with capture='eager'"
        )


def with_origins(rows: pa.Table, sets: Mapping[str, pa.ChunkedArray]) -> pa.Table:
    """Results with the sets of their records beside their own columns."""
    for source, found in sets.items():
        ids = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
        if not pa.types.is_list(ids.type):
            ids = pa.ListArray.from_arrays(pa.array(range(len(ids) + 1), pa.int32()), ids)
        rows = rows.append_column(ORIGINS + source, ids)
    return rows


def to_kafka(topic: str, options: Mapping[str, str], *, origins: int = 0) -> TopicWriter:
    """A writer of results to a topic: `flow.sink("alerts", frame, write=to_kafka("alerts", …))`.

    A message's value is a JSON object of the result's columns; its key and its header `result_id`
    are the result's id. `options` has `kafka.bootstrap.servers`, more properties of the producer
    with the prefix `kafka.`, and `config`, a file with those that are secret. With `origins` the
    header `headwater.origins` has, by source, the number of records and the first so many ids.
    """
    from pyspark.sql.types import StructType

    if origins < 0:
        raise FlowError(f"to_kafka({topic!r}): origins={origins} is no number of ids")
    if SERVERS not in options:
        raise FlowError(f"to_kafka({topic!r}): give options={{'{SERVERS}': 'HOST:PORT'}}")
    return TopicWriter(topic, Topics(topic, StructType([]), dict(options)), origins)
