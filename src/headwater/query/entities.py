"""Entities of workflows by their names: ids, names of ids, and those that are Headwater's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.errors import StoreError, UnknownId
from headwater.query import records, results
from headwater.reduce.blocks import vertex_ids
from headwater.store.batch import ID, TIME
from headwater.store.catalog import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from headwater.query.job_edges import Held
    from headwater.reduce.blocks import Ints
    from headwater.store.catalog import Catalog, Sink
    from headwater.store.reader import Reader

PREFIX = "hw:"
STREAMS = "streams"
"""In the place of a flow: an event of a named stream, whichever flows make and read it."""
_SAMPLE = 200_000
"""Names among which a similar one is looked for."""


@dataclass(frozen=True, slots=True)
class Own:
    """An entity that is a record of one of the store's sources, or a result of one of its sinks."""

    place: Source | Sink
    id: int

    @property
    def kind(self) -> str:
        """What it is: `record` or `result`."""
        return "record" if isinstance(self.place, Source) else "result"


def ids_of(names: Iterable[str]) -> Ints:
    """The ids by which jobs know entities."""
    return vertex_ids(pa.array(list(names), pa.string()), "entity")


def names_of(reader: Reader, ids: Iterable[int]) -> dict[int, str]:
    """The names of inputs and outputs of finished jobs."""
    asked = list(ids)
    chosen = among("id", asked)
    found = reader.query(
        f"SELECT id, name FROM entities {chosen} UNION ALL "
        f"SELECT id, name FROM fresh_entities {chosen}",
        [asked],
    )
    return dict(zip(found["id"].to_pylist(), found["name"].to_pylist(), strict=True))


def among(column: str, ids: Sequence[int]) -> str:
    """A condition that a column has one of some ids; these are the query's first parameter.

    >>> among("id", [7])
    'WHERE id = 7 AND $1 IS NOT NULL'
    """
    if len(ids) == 1:
        # A constant is compared with the bounds of row groups before any are read.
        return f"WHERE {column} = {int(ids[0])} AND $1 IS NOT NULL"
    return f"WHERE {column} IN (SELECT unnest($1::BIGINT[]))"


def own(catalog: Catalog, name: str) -> list[Own]:
    """What `hw:<flow>/<source-or-sink>/<id>` is, if the store has that source or sink, or both.

    `hw:streams/<stream>/<id>` is an event of a stream: a result of the sinks that publish it, in
    whatever version, and a record of the sources that read it.
    """
    place, _, number = name.removeprefix(PREFIX).rpartition("/")
    if not name.startswith(PREFIX) or not number.removeprefix("-").isdecimal():
        return []
    known: tuple[Source | Sink, ...] = (*catalog.sinks, *catalog.sources)
    found = [one for one in known if one.qualified == place]
    streams = {place.removeprefix(f"{STREAMS}/")} if place.startswith(f"{STREAMS}/") else set()
    streams.update(stream for one in found for stream in one.streams)
    if streams:
        # A sink may publish into several streams: what reads any of them reads its results.
        for sink in catalog.sinks:
            streams.update(sink.streams if streams & set(sink.streams) else ())
        found += [one for one in known if streams & set(one.streams) and one not in found]
    return [Own(one, int(number)) for one in found]


def name_of(place: Source | Sink, id: int) -> str:
    """The name of a record or result; that of an event where it goes by a stream."""
    if place.streams:
        return f"{PREFIX}{STREAMS}/{place.streams[0]}/{id}"
    return f"{PREFIX}{place.flow}/{place.name}/{id}"


def times(reader: Reader, found: Sequence[Own]) -> dict[tuple[str, int, int], datetime | None]:
    """The event times of records and results that the store has, by kind, number and id."""
    known: dict[tuple[str, int, int], datetime | None] = {}
    for place, asked in by_place(found):
        if isinstance(place, Source):
            rows = records.found(reader, place, np.array(asked, np.int64), own=False)
        else:
            rows = reader.query(
                f"SELECT {ID}, {TIME} FROM result_{place.no} "
                f"WHERE {ID} IN (SELECT unnest(?::BIGINT[]))",
                [asked],
            )
        kind = Own(place, 0).kind
        for number, moment in zip(rows[ID].to_pylist(), rows[TIME].to_pylist(), strict=True):
            known[kind, place.no, number] = moment
    return known


def by_place(found: Iterable[Own]) -> list[tuple[Source | Sink, list[int]]]:
    """The ids of records by source, and of results by sink."""
    places: dict[tuple[str, int], tuple[Source | Sink, list[int]]] = {}
    for one in found:
        places.setdefault((one.kind, one.place.no), (one.place, []))[1].append(one.id)
    return list(places.values())


def require_known(reader: Reader, catalog: Catalog, held: Sequence[Held], name: str) -> None:
    """Raise `UnknownId` if neither a job nor a flow has told of an entity."""
    if any(_exists(reader, one) for one in own(catalog, name)):
        return
    number = int(ids_of([name])[0])
    if names_of(reader, [number]) or any(job.has(reader, number) for job in held):
        return
    raise UnknownId(f"no job has an input or output {name!r}{_hint(reader, held, name)}")


def _exists(reader: Reader, mine: Own) -> bool:
    place = mine.place
    if not isinstance(place, Source):
        return results.exists(reader, place, mine.id)
    sql = f"SELECT 1 AS one FROM edges WHERE source_no = {place.no} AND source_id = ? LIMIT 1"
    if reader.query(sql, [mine.id]).num_rows:
        return True
    try:
        return bool(len(records.is_known(reader, place, np.array([mine.id], np.int64))))
    except StoreError:
        return False  # where it was is gone, or has no file yet


def _hint(reader: Reader, held: Sequence[Held], name: str) -> str:
    jobs = reader.query("SELECT 1 AS one FROM jobs LIMIT 1").num_rows
    if not jobs:
        return "; the store has no job yet: headwater reduce writes them"
    relations = ["entities", "fresh_entities", *(job.tables.name for job in held)]
    sample = " UNION ALL ".join(f"(SELECT name FROM {one} LIMIT {_SAMPLE})" for one in relations)
    close = reader.query(
        f"SELECT name, jaro_winkler_similarity(lower(name), lower($1)) AS likeness FROM ({sample}) "
        "WHERE likeness > 0.8 ORDER BY likeness DESC, name LIMIT 1",
        [name],
    )
    if close.num_rows:
        return f"; did you mean {close['name'][0].as_py()!r}?"
    return "; intermediates of a finished job are known only if it was reduced with keep='full'"
