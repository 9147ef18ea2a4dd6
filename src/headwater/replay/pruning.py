"""Whether Spark prunes a column that a step has and nothing below it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from headwater.columns import quoted
from headwater.flow.jvm import sequence
from headwater.lowering.base import Lowering
from headwater.lowering.plain import Plain
from headwater.names import PREFIX

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headwater.flow import nodes
    from headwater.lowering.sources import Sources


def is_used(sink: nodes.Sink, step: str, column: str, sources: Sources) -> bool:
    """Whether a column of a deduplication is of use to a sink.

    A deduplication whose event time Spark has pruned drops nothing as late. Spark's optimizer is
    asked: an expression in place of the column is there in its plan, or it is not.
    """
    lowered = _Tagged(sources, step, column).lower(sink)
    return _has_tag(lowered._jdf.queryExecution().optimizedPlan())


class _Tagged(Plain):
    """The plan of a sink over batches, in which one column can be told."""

    def __init__(self, sources: Sources, step: str, column: str) -> None:
        # Its sources' frames are there already: it needs no session.
        Lowering.__init__(self)
        self._frames, self.sources = sources, {}
        self._step, self._column = step, column

    def visit_source(self, node: nodes.Source) -> DataFrame:
        frame = self._frames.frame(node)
        return frame.drop(*(c for c in frame.columns if c.startswith(PREFIX)))

    def visit_deduplicate(self, node: nodes.Deduplicate, df: DataFrame) -> DataFrame:
        if node.step == self._step:
            tagged = F.udf(headwater_tag, df.schema[self._column].dataType, useArrow=False)
            return df.withColumn(self._column, tagged(quoted(self._column)))
        # In batch there is no watermark to be within.
        return df.dropDuplicates(list(node.columns) if node.columns else None)


def headwater_tag(value: Any) -> Any:
    """The value as it is: only the function's name matters."""
    return value


def _has_tag(plan: Any) -> bool:
    """Whether the tag is in a plan of Spark's."""
    return any(map(_is_tag, sequence(plan.expressions()))) or any(
        map(_has_tag, sequence(plan.children()))
    )


def _is_tag(expression: Any) -> bool:
    if expression.getClass().getSimpleName() == "PythonUDF":
        return str(expression.name()) == headwater_tag.__name__
    return any(map(_is_tag, sequence(expression.children())))
