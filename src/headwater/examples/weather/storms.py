"""Storm detection and clustering: the functions of the weather flows, one event for each.

`find` lists the cells that reflect strongly, `cluster` makes storms of those that touch. Both take
batches in Arrow, as `batches: arrow` says in the flow files, and keep no memory of other events.

>>> from headwater.examples.weather.radar import Radar
>>> from headwater.examples.weather.sky import Sky
>>> scans = Radar(Sky.plan(seed=7)).scans(np.arange(121))
>>> found = cluster(scans.append_column("cells", find(scans, 35)["cells"]))
>>> sum(found["number"].to_pylist()) > 0
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.errors import HeadwaterError
from headwater.examples.weather.components import clusters
from headwater.examples.weather.plane import EAST, NORTH, SIDE, Numbers, degrees
from headwater.examples.weather.radar import grids_of
from headwater.examples.weather.stations import LATS, LONS, by_id, places
from headwater.flow.determinism import deterministic
from headwater.streams.schema import parse

if TYPE_CHECKING:
    from headwater.examples.stream import Ints

LIGHT, SEVERE = 20, 35
"""The intensities in dBZ from which on it is light rain, and severe weather."""

LEAST = 3
"""Cells that a storm has at least: fewer are clutter."""

FOUND = "cells array<struct<cell: smallint, dbz: tinyint>>"
"""The columns that `find` makes."""

STORMS = "number int, storms array<struct<lat: double, lon: double, cells: int, dbz: int>>"
"""The columns that `cluster` makes: how many storms, and of each the centre, size and strength."""


@deterministic
def find(scans: pa.RecordBatch, level: float = LIGHT) -> pa.Table:
    """The cells of each scan that reflect with `level` dBZ or more."""
    (dbz,) = grids_of(scans, "dbz")
    scan, cell = np.nonzero(dbz >= level)
    values = {"cell": cell.astype(np.int16), "dbz": dbz[scan, cell]}
    return pa.table({"cells": _lists(scan, len(dbz), values, _type(FOUND, "cells"))})


@deterministic
def cluster(scans: pa.RecordBatch, least: int = LEAST) -> pa.Table:
    """The storms of each scan, the strongest first: cells of `find` that touch each other."""
    scan, cell, dbz = _cells(scans["cells"])
    if not len(cell):
        return _storms(len(scans), np.empty(0, np.int64), {})
    first = clusters(scan, cell, SIDE)
    starts, which, size = np.unique(first, return_inverse=True, return_counts=True)
    power = 10.0 ** (dbz / 10)
    weight = np.bincount(which, power)
    east = np.bincount(which, power * EAST[cell]) / weight
    north = np.bincount(which, power * NORTH[cell]) / weight
    strongest = np.full(len(starts), -128, np.int64)
    np.maximum.at(strongest, which, dbz)
    kept = np.flatnonzero(size >= least)
    order = kept[np.lexsort((kept, -size[kept], -strongest[kept], scan[starts[kept]]))]
    of = scan[starts[order]]
    lat, lon = degrees(east[order], north[order], _centres(scans["station"], of))
    columns = {
        "lat": lat.round(3),
        "lon": lon.round(3),
        "cells": size[order].astype(np.int32),
        "dbz": strongest[order].astype(np.int32),
    }
    return _storms(len(scans), of, columns)


def _storms(scans: int, of: Ints, columns: dict[str, Any]) -> pa.Table:
    storms = _lists(of, scans, columns, _type(STORMS, "storms"))
    return pa.table(
        {"number": pa.array(np.bincount(of, minlength=scans), pa.int32()), "storms": storms}
    )


def _cells(column: pa.Array | pa.ChunkedArray) -> tuple[Ints, Ints, Ints]:
    """Of all cells of a batch: the number of their scan, their number in it, their intensity."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if array.null_count:
        raise HeadwaterError("cells must not be null: give an empty list")
    size = array.value_lengths().to_numpy(zero_copy_only=False)
    cells = array.flatten()
    cell, dbz = (cells.field(name).to_numpy(zero_copy_only=False) for name in ("cell", "dbz"))
    return np.repeat(np.arange(len(array)), size), cell.astype(np.int64), dbz.astype(np.int64)


def _centres(stations: pa.Array | pa.ChunkedArray, scan: Ints) -> tuple[Numbers, Numbers]:
    """Where the stations of some scans are."""
    ids = stations.to_pylist()
    place = np.array([places().get(station, -1) for station in ids], np.int64)
    if -1 in place:
        by_id(ids[place.tolist().index(-1)])
    return LATS[place[scan]], LONS[place[scan]]


def _lists(of: Ints, rows: int, columns: dict[str, Any], kind: pa.DataType) -> pa.Array:
    """A list of structs for each row; `of` says whose they are, in order."""
    fields = list(kind.value_type)
    arrays = [pa.array(columns.get(field.name, []), field.type) for field in fields]
    ends = np.cumsum(np.bincount(of, minlength=rows))
    offsets = pa.array(np.concatenate([[0], ends]), pa.int32())
    return pa.ListArray.from_arrays(
        offsets, pa.StructArray.from_arrays(arrays, fields=fields)
    ).cast(kind)


def _type(schema: str, column: str) -> pa.DataType:
    return parse(schema).field(column).type
