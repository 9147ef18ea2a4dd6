"""Paired ratios: what one run over another says when a machine's speed drifts."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Student's t at 97.5 %, by degrees of freedom 1, 2, ...; above, the normal distribution's.
_T = tuple(
    float(quantile)
    for quantile in (
        "12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262 2.228 "
        "2.201 2.179 2.160 2.145 2.131 2.120 2.110 2.101 2.093 2.086 "
        "2.080 2.074 2.069 2.064 2.060 2.056 2.052 2.048 2.045 2.042"
    ).split()
)


QUARTILES = "quartiles"
"""The column of the spread of what has no pair."""


def quartiles(values: Sequence[float]) -> list[float] | None:
    """The first and the third quartile; None where there is only one value.

    >>> quartiles([5, 1, 2, 3, 4])
    [2.0, 4.0]
    """
    if len(values) < 2:
        return None
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return [low, high]


def rounded(known: Interval | None, digits: int = 3) -> list[float] | None:
    """An interval as reports have it.

    >>> rounded(Interval(0.91234, 1.1)), rounded(None)
    ([0.912, 1.1], None)
    """
    return None if known is None else [round(known.low, digits), round(known.high, digits)]


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % confidence interval."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        """Whether the value is in the interval.

        >>> 1 in Interval(0.9, 1.1)
        True
        """
        return self.low <= value <= self.high


def interval(ratios: Sequence[float]) -> Interval | None:
    """Student's interval of the ratios' logarithms; None where there is only one.

    >>> interval([0.5, 2.0])
    Interval(low=0.000149..., high=6681.7...)
    >>> interval([0.9, 0.9, 0.9])
    Interval(low=0.9..., high=0.9...)
    """
    if len(ratios) < 2:
        return None
    logs = [math.log(ratio) for ratio in ratios]
    degrees = len(logs) - 1
    normal = statistics.NormalDist().inv_cdf(0.975)
    quantile = _T[degrees - 1] if degrees <= len(_T) else normal
    middle = statistics.fmean(logs)
    # Beyond e^700 there are no floats; two wild runs can ask for more.
    half = min(quantile * statistics.stdev(logs) / math.sqrt(len(logs)), 600)
    return Interval(math.exp(middle - half), math.exp(middle + half))
