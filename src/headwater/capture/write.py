"""The user's own writer beside the store: any Spark format, or a function of each batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pyarrow as pa

from headwater.errors import FlowError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RESULT_ID = "result_id"


@runtime_checkable
class TableWriter(Protocol):
    """A writer of Headwater's own: it takes results as Arrow, in the driver."""

    def take(self, query_id: str, batch: int, ids: pa.Array, rows: pa.Table) -> None:
        """Hand a batch on: `rows` has `__hw_id`, `__hw_time`, then the sink's own columns.

        What a query and batch brought before is to be passed over.
        """


def check_write(write: Any, where: str) -> None:
    """Refuse a writer that is neither a function nor a dict with a format."""
    if write is None or callable(write) or isinstance(write, TableWriter):
        return
    if not isinstance(write, dict) or "format" not in write:
        raise FlowError(
            f"{where}: write= takes a function of (DataFrame, batch) or a dict such as "
            "{'format': 'parquet', 'path': 'out/'}"
        )


def hand_on(write: Any, spark: SparkSession, ids: pa.Array, user: pa.Table, batch: int) -> None:
    """Give a batch's results, each with its stable id, to the user's own writer.

    It happens before the store commits: a crash in between hands the batch on again, with the
    same ids, so nothing is lost and a reader can tell what came twice.
    """
    table = pa.table([ids, *user.columns], names=[RESULT_ID, *user.column_names])
    given_on(write, spark.createDataFrame(table), batch)


def given_on(write: Any, df: DataFrame, batch: int) -> None:
    """Give a batch's results, as Spark has them, to the user's own writer."""
    if callable(write):
        write(df, batch)
        return
    options = {k: v for k, v in write.items() if k not in ("format", "path", "mode")}
    writer = df.write.format(write["format"]).mode(write.get("mode", "append")).options(**options)
    writer.save(write.get("path"))
