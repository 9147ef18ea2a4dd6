"""Ordered steps in a plan: pack, process by bucket, unpack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from headwater.names import GROUP
from headwater.ordered.host import BUCKET, BUCKETS, PACKED, ROWS, Host, pack, unpacker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from headwater.ordered.step import Step


def hosted(
    df: DataFrame,
    step: Step,
    *,
    sort: Sequence[str],
    schema: StructType,
    keyed: bool,
    timed: bool = False,
) -> DataFrame:
    """What a step makes of a frame's rows, which have the hash of their keys.

    A step that is `timed` is told the watermark, and called again once that passes what is due.
    """
    buckets = BUCKETS if keyed else 1
    bucket = F.pmod(F.col(GROUP), F.lit(buckets)).cast("int").alias(BUCKET)
    rows = df.select(bucket, *df.columns).mapInArrow(pack, PACKED)
    told = timed and df.isStreaming
    made = rows.groupBy(BUCKET).transformWithStateInPandas(
        Host(step, tuple(sort), told), f"{ROWS} binary", "Append", "EventTime" if told else "None"
    )
    arrow = to_arrow_schema(schema, timezone="UTC", prefers_large_types=False)
    return made.mapInArrow(unpacker(arrow), schema)
