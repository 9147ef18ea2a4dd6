"""What Spark itself says about a text, a function and the name of a column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions as F

from headwater.errors import FlowError
from headwater.flow.callsite import callsite
from headwater.flow.jvm import active_session, spark_jvm
from headwater.spark_errors import one_line

if TYPE_CHECKING:
    from headwater.flow.frame import Frame


def require_readable(sql: str) -> None:
    """Raise unless Spark parses the text: sqlglot passes over slips such as GROUP BY nothing."""
    try:
        active_session()._jsparkSession.sessionState().sqlParser().parsePlan(sql)
    except ParseException as error:
        raise FlowError(f"sql at {callsite()}: {one_line(error)}") from error


def is_aggregate(function: str) -> bool:
    """Whether a function makes one value of many rows."""
    identifier = spark_jvm().org.apache.spark.sql.catalyst.FunctionIdentifier(function.lower())
    catalog = active_session()._jsparkSession.sessionState().catalog()
    try:
        return str(catalog.lookupFunctionInfo(identifier).getGroup()) == "agg_funcs"
    except AnalysisException:
        return False  # there is none of this name: Spark says so when the step is made


def name_in_group(frame: Frame, keys: list[str], expression: str) -> str:
    """What Spark calls the column of an expression over groups that has no name of its own."""
    groups = frame._df.groupBy(*map(F.expr, keys))
    try:
        return str(groups.agg(F.expr(expression)).columns[-1])
    except AnalysisException:
        return expression
