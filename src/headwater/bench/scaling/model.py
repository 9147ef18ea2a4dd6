"""Models of cost: a sum of amounts, each times what one of it costs, fitted to measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Model:
    """What one of each amount costs, and how far the model is from what was measured."""

    costs: Mapping[str, float]
    measured: tuple[float, ...]
    said: tuple[float, ...]

    @property
    def residuals(self) -> list[float]:
        """By measurement: what the model says over what was measured, less one."""
        return [said / seen - 1 for said, seen in zip(self.said, self.measured, strict=True)]

    @property
    def typical(self) -> float:
        """Half of the measurements are nearer to the model than this share of themselves."""
        return float(np.median(np.abs(self.residuals)))

    @property
    def worst(self) -> float:
        """Of ten measurements, nine are nearer than this."""
        return float(np.quantile(np.abs(self.residuals), 0.9))

    @property
    def explained(self) -> float:
        """The share of the variance that the model explains (R²)."""
        seen, said = np.array(self.measured), np.array(self.said)
        spread = float(np.sum((seen - seen.mean()) ** 2))
        return 1 - float(np.sum((seen - said) ** 2)) / spread if spread else 1.0

    def of(self, amounts: Mapping[str, float]) -> float:
        """What so many would cost."""
        return sum(self.costs[name] * amount for name, amount in amounts.items())


def fitted(amounts: Sequence[Mapping[str, float]], measured: Sequence[float]) -> Model:
    """The least squares of relative residuals, with no cost below zero.

    Relative, so that a small run counts as much as a large one.

    >>> rows = [{"batch": 1, "record": n} for n in (10, 100, 1_000)]
    >>> model = fitted(rows, [5 + 2 * row["record"] for row in rows])
    >>> {name: round(cost, 6) for name, cost in model.costs.items()}
    {'batch': 5.0, 'record': 2.0}
    >>> round(model.typical, 6), round(model.of({"batch": 2, "record": 1}), 6)
    (0.0, 12.0)
    """
    names = list(amounts[0])
    seen = np.array(measured, float)
    table = np.array([[row[name] for name in names] for row in amounts], float)
    costs = _not_negative(table / seen[:, None], np.ones(len(seen)))
    said = table @ costs
    found = {name: float(cost) for name, cost in zip(names, costs, strict=True)}
    return Model(found, tuple(map(float, seen)), tuple(map(float, said)))


def _not_negative(
    table: npt.NDArray[np.float64], wanted: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Least squares without negative numbers, by Lawson and Hanson's active sets.

    >>> _not_negative(np.array([[1.0, 1], [1, 2], [1, 3]]), np.array([3.0, 2, 1])).round(6)
    array([2., 0.])
    """
    scale = np.abs(table).max(axis=0)
    scale[scale == 0] = 1
    scaled = table / scale
    count = scaled.shape[1]
    found = np.zeros(count)
    free = np.zeros(count, bool)
    for _ in range(10 * count):
        slope = scaled.T @ (wanted - scaled @ found)
        slope[free] = -np.inf
        if slope.max() <= 1e-10:
            break
        free[int(slope.argmax())] = True
        while True:
            tried = np.zeros(count)
            tried[free] = np.linalg.lstsq(scaled[:, free], wanted, rcond=None)[0]
            low = free & (tried <= 0)
            if not low.any():
                found = tried
                break
            # As far towards it as none falls below zero; the one that would is held there.
            share = float((found[low] / np.maximum(found[low] - tried[low], 1e-300)).min())
            found = found + share * (tried - found)
            free &= found > 1e-12
            found[~free] = 0
    costs: npt.NDArray[np.float64] = found / scale
    return costs
