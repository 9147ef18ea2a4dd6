"""Users' functions and services in Spark plans: struct in, struct out, all else beside them.

Both are marked as not deterministic for Spark, whatever they were declared for replays: Spark then
calls them once for each row, where it might else repeat a call below a filter on its result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from headwater.columns import quoted
from headwater.functions.batches import batch_function
from headwater.functions.frames import Shape
from headwater.lowering.rows import ROW
from headwater.service.calls import Policy
from headwater.service.step import Called, service_function
from headwater.service.tokens import token

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from headwater.flow.nodes import Map, Service


def mapped(df: DataFrame, node: Map, columns: Sequence[str], carry: Sequence[str]) -> DataFrame:
    """The rows that a function makes of batches, beside the columns to keep and to carry."""
    function = batch_function(
        node.function, node.takes, shape_of(df, node.schema, "map", node.step)
    )
    udf = arrow_udf(function, node.schema).asNondeterministic()  # type: ignore[call-overload]
    rows = df.withColumn(ROW, udf(F.struct(*map(quoted, columns))))
    made = [F.col(ROW)[name].alias(name) for name in node.schema.fieldNames()]
    return rows.select(*map(quoted, node.keep), *made, *map(quoted, carry))


def serviced(df: DataFrame, node: Service, identity: Column) -> DataFrame:
    """The rows with what came of the call for each; `identity` tells them apart."""
    called = Called(
        target=node.target,
        response=node.response,
        policy=Policy(node.concurrency, node.retries, node.timeout, node.backoff),
        step=node.step,
        token=token(),
        timezone=timezone_of(df),
        static=dict(node.static),
    )
    udf = arrow_udf(service_function(called), node.outcome)  # type: ignore[call-overload]
    request = F.struct(*(expr.column.alias(name) for name, expr in node.request))
    return df.withColumn(node.column, udf.asNondeterministic()(request, identity))


def shape_of(df: DataFrame, schema: StructType, what: str, step: str) -> Shape:
    """What a function of a step must give."""
    return Shape(schema, timezone_of(df), f"{what} {step!r}")


def timezone_of(df: DataFrame) -> str:
    """The session's time zone, in which functions see times."""
    return str(df.sparkSession.conf.get("spark.sql.session.timeZone"))
