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

from headwater.flow.watermarks import lag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.flow import nodes

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
        delays = [d for step in steps if (d := lag(step)) is not None]
        if not delays:
            return np.zeros_like(given)
        # While the watermark is 0 Spark passes nothing down, and it never passes a negative one.
        return np.where(given == 0, 0, np.maximum(given - max(delays), 0))
