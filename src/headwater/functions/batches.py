"""A user's function of batches: as many rows out as in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.functions.frames import Shape, Takes, given

if TYPE_CHECKING:
    from collections.abc import Callable


def batch_function(
    function: Callable[[Any], Any], takes: Takes, shape: Shape
) -> Callable[[pa.Array], pa.Array]:
    """The function over arrays of rows, checked: as Spark calls it."""

    def apply(rows: pa.Array) -> pa.Array:
        return shape.array(function(given(rows, takes)), len(rows))

    # Spark reads the kind of function from its annotations, which must be real types.
    apply.__annotations__ = {"rows": pa.Array, "return": pa.Array}
    return apply
