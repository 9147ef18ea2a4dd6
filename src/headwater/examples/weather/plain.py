"""What the weather flow does, in plain Python: for a look at its functions without a deployment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.examples.weather.stations import INDIANA
from headwater.examples.weather.storms import cluster, find

if TYPE_CHECKING:
    from collections.abc import Iterable


def indiana(scans: pa.Table) -> pa.Table:
    """The scans of Indiana's stations, selected by the names of their files."""
    pattern = f"Level2_({'|'.join(INDIANA.values())})_"
    return scans.filter(pc.match_substring_regex(scans["file"], pattern))


def storms_in(scans: pa.Table, level: float) -> pa.Table:
    """The scans that have storms of this intensity, with these storms."""
    scans = scans.append_column("cells", find(scans, level)["cells"])
    found = cluster(scans)
    for name in found.schema.names:
        scans = scans.append_column(name, found[name])
    return scans.filter(pc.greater(scans["number"], 0)).drop_columns(["cells"])


def detected(sweeps: Iterable[pa.Table], level: float) -> list[dict[str, Any]]:
    """The events with storms of this intensity in Indiana, from tables of scans."""
    found = (storms_in(indiana(scans), level) for scans in sweeps)
    return [event for scans in found for event in scans.to_pylist()]
