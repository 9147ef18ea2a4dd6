"""How Spark's watermark travels down a flow: which steps pass it on late, and by how much."""

from __future__ import annotations

from headwater.flow import nodes

MARK = "spark.watermarkDelayMs"
"""In the metadata of a column: Spark takes it for the event time."""


def lag(step: nodes.Node) -> int | None:
    """How far (ms) behind the batch's watermark a step's output is; None where none is set above.

    Windows, sessions and deduplications pass the watermark on as it is. A join of two streams may
    give out a pair whose older row has waited for the other, so what follows it has to wait as
    long; several inputs go by the slowest.
    """
    match step:
        case nodes.Source(watermark=watermark, streaming=streaming):
            return 0 if watermark and streaming else None
        case nodes.Watermark():
            return 0
    above = input_lag(step)
    if above is not None and isinstance(step, nodes.Join) and joins_streams(step):
        return above + max(0, *step.waits)
    return above


def input_lag(step: nodes.Node) -> int | None:
    """How far (ms) behind the batch's watermark a step's input is."""
    return max((d for one in step.inputs if (d := lag(one)) is not None), default=None)


def joins_streams(step: nodes.Join) -> bool:
    """Whether both sides of a join keep coming."""
    return all(is_streaming(side) for side in step.inputs)


def is_streaming(step: nodes.Node) -> bool:
    """Whether more rows of a step may come."""
    return any(isinstance(n, nodes.Source) and n.streaming for n in step.upstream())
