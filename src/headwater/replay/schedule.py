"""When Spark regarded what as late: the watermark of every step in every batch of a run.

Spark computes one watermark for each batch and passes it down the plan; a step lets nothing in that
is not after its watermark of the batch before, and gives out what is not after that of the batch
itself. The batches' watermarks are in the store, so both can be told afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from headwater.flow import nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

Times = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The watermarks of a run's batches 0, 1, … in milliseconds; 0 where there was none."""

    watermarks: tuple[int, ...]

    def let_in(self, step: nodes.Node) -> Times:
        """Per batch: up to which time (ms) a stateful step drops what arrives, as late."""
        return np.concatenate([np.zeros(1, np.int64), self.given_out(step)[:-1]])

    def given_out(self, step: nodes.Node) -> Times:
        """Per batch: up to which time (ms) a stateful step gives out what it holds."""
        return self._boundaries(step.inputs)

    def passed_on(self, step: nodes.Node) -> Times:
        """Per batch: the watermark (ms) that the steps after this one get."""
        return self._boundaries((step,))

    def _boundaries(self, steps: Sequence[nodes.Node]) -> Times:
        given = np.array(self.watermarks, np.int64)
        delays = [d for step in steps if (d := _delay(step)) is not None]
        if not delays:
            return np.zeros_like(given)
        # While the watermark is 0 Spark passes nothing down, and it never passes a negative one.
        return np.where(given == 0, 0, np.maximum(given - max(delays), 0))


def _delay(step: nodes.Node) -> int | None:
    """How far behind the batch's watermark a step's output is; None where none is set above."""
    match step:
        case nodes.Source(watermark=watermark, streaming=streaming):
            return 0 if watermark and streaming else None
        case nodes.Watermark():
            return 0
    above = [d for one in step.inputs if (d := _delay(one)) is not None]
    if not above:
        return None
    if isinstance(step, nodes.Join) and joins_streams(step):
        return max(above) + max(0, *step.waits)
    return max(above)


def joins_streams(step: nodes.Join) -> bool:
    """Whether both sides of a join keep coming."""
    return all(is_streaming(side) for side in step.inputs)


def is_streaming(step: nodes.Node) -> bool:
    """Whether more rows of a step may come."""
    return any(isinstance(n, nodes.Source) and n.streaming for n in step.upstream())
