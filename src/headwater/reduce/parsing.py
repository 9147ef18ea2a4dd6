"""Parsing: lines of a provenance stream as columns of edges.

All that is plainly right is read and checked by columns, without a step of Python for a line. What
is doubtful in any way is read again one by one, where the reasons are: so the quick way need not
know why something is wrong, and what it takes is what the slow way would take.

>>> parsed = parse(
...     b'{"type": "used", "activity": "m1", "entity": "in-7"}\\n{"type": "end"}\\n', "count"
... )
>>> parsed.told, parsed.ends, sorted(parsed.names.to_pylist())
({'used': 1}, ['count'], ['in-7', 'm1'])
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.reduce.blocks import NO_TIME, Bools, Ints
from headwater.reduce.documents import parse_document
from headwater.reduce.elements import EARLIEST, EDGES, END, GROUP, LATEST, LONGEST, OTHERS, moment
from headwater.reduce.gathered import Gathered
from headwater.reduce.lines import read_line
from headwater.reduce.reading import Lines
from headwater.reduce.told import (
    DERIVED,
    FIELDS,
    TYPES,
    Parsed,
    Told,
    assembled,
    of_columns,
    of_edges,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    Columns = Mapping[str, pa.Array]

__all__ = ["Parsed", "parse", "parse_document"]

_ALL = (*TYPES, END, *OTHERS)
_KINDS = pa.array(_ALL)
_END = len(TYPES)
_MOST_MILLISECONDS = LATEST // 1000 + 1


def parse(lines: pa.Array | pa.ChunkedArray | bytes, job: str | None) -> Parsed:
    """What lines tell: text, or an array with a line (a message) in each row.

    Rows are numbered from 0, blank ones too. With `job` None elements of any job are taken.
    """
    read = Lines.of(lines)
    quick = _Quick(job)
    for table, rows in read.tables():
        quick.take(table, rows)
    slow = Gathered(job)
    for row in sorted([*read.left, *quick.doubtful]):
        read_line(read.text(row), row, slow)
    parts = [*quick.parts, of_edges(slow.edges)] if slow.edges else quick.parts
    return assembled(
        parts, slow.rejected, quick.filtered + slow.filtered, [*quick.ends, *slow.ends]
    )


@dataclass(slots=True)
class _Quick:
    """Elements checked by columns."""

    job: str | None
    parts: list[Told] = field(default_factory=list)
    filtered: Counter[str] = field(default_factory=Counter)
    ends: list[str | None] = field(default_factory=list)
    doubtful: list[int] = field(default_factory=list)

    def take(self, table: pa.Table, rows: Ints) -> None:
        """Takes what is right; rows of which anything is doubtful are left for the slow way."""
        columns = {name: _whole(table[name]) for name in table.column_names}
        groups = columns.pop(GROUP)
        if groups.null_count == len(groups):
            self._elements(columns, rows)
            return
        grouped = pc.is_valid(groups)
        mask = grouped.to_numpy(zero_copy_only=False)
        if not mask.all():
            alone = pc.invert(grouped)
            self._elements(_filtered(columns, alone), rows[~mask])
            columns, groups, rows = _filtered(columns, grouped), groups.filter(grouped), rows[mask]
        self._groups(columns, groups, rows)

    def _elements(self, columns: Columns, rows: Ints) -> None:
        kinds = _kinds(columns["type"])
        times, wrong = _times(columns["time"])
        bad = self._doubtful(columns, kinds, wrong)
        self.doubtful.extend(rows[bad].tolist())
        ended = ~bad & (kinds == _END)
        if ended.any():
            told = columns["job"].filter(pa.array(ended)).to_pylist()
            self.ends.extend(job or self.job for job in told)
        self._add(columns, kinds, times, rows, ~bad)

    def _groups(self, columns: Columns, groups: pa.ListArray, rows: Ints) -> None:
        """Elements in groups; a group with a doubtful one is doubtful as a whole."""
        times, wrong = _times(columns["time"])
        typed = pc.not_equal(columns["type"], GROUP)
        bad = pc.fill_null(typed, False).to_numpy(zero_copy_only=False) | wrong
        bad |= self._of_another_job(columns) | _too_long(columns, ("function", "execution", "node"))
        parents = pc.list_parent_indices(groups).to_numpy()
        elements = groups.flatten()
        inside = dict(zip(_names(elements.type), elements.flatten(), strict=True))
        del inside[GROUP]
        kinds = _kinds(inside["type"])
        own, wrong = _times(inside["time"])
        bad[parents[self._doubtful(inside, kinds, wrong) | (kinds == _END)]] = True
        self.doubtful.extend(rows[bad].tolist())
        own = np.where(own == NO_TIME, times[parents], own)
        for name in ("function", "execution", "node"):
            inside[name] = _or_else(inside[name], columns[name], parents)
        self._add(inside, kinds, own, rows[parents], ~bad[parents])

    def _add(self, columns: Columns, kinds: Ints, times: Ints, rows: Ints, good: Bools) -> None:
        """Adds the edges and counts the others among what is good."""
        edges = good & (kinds < len(TYPES))
        if not edges.all():
            counts = np.bincount(kinds[good & ~edges], minlength=len(_ALL))
            for place in np.flatnonzero(counts[_END + 1 :]) + _END + 1:
                self.filtered[_ALL[place]] += int(counts[place])
            if not edges.any():
                return
            columns = _filtered(columns, pa.array(edges))
            kinds, times, rows = kinds[edges], times[edges], rows[edges]
        self.parts.append(of_columns(kinds, columns, rows, times))

    def _doubtful(self, columns: Columns, kinds: Ints, wrong_times: Bools) -> Bools:
        """Which elements might have to be rejected."""
        bad = wrong_times | _too_long(columns, ("function", "execution", "node"))
        named = {name: _is_name(columns[name]) for name in FIELDS}
        for place, kind in enumerate(TYPES):
            chosen = kinds == place
            if chosen.any():
                source, destination = EDGES[kind]
                bad |= chosen & ~(named[source] & named[destination])
                if place >= DERIVED:
                    same = pc.fill_null(pc.equal(columns[source], columns[destination]), False)
                    bad |= chosen & same.to_numpy(zero_copy_only=False)
        bad &= (kinds >= 0) & (kinds < len(TYPES))
        return bad | (kinds < 0) | self._of_another_job(columns)

    def _of_another_job(self, columns: Columns) -> Bools:
        told = columns["job"]
        bad = _too_long(columns, ("job",))
        if self.job is None or told.null_count == len(told):
            return bad
        other = pc.and_(pc.not_equal(told, self.job), pc.not_equal(told, ""))
        bad |= pc.fill_null(other, False).to_numpy(zero_copy_only=False)
        return bad


def _kinds(types: pa.Array) -> Ints:
    """The types' places in `_ALL`; -1 for those that are not there."""
    found = pc.fill_null(pc.index_in(types, value_set=_KINDS), -1)
    places: Ints = found.to_numpy().astype(np.int64)
    return places


def _times(told: pa.Array) -> tuple[Ints, Bools]:
    """µs of milliseconds or of text, and which of them can't be."""
    if told.null_count == len(told):
        return np.full(len(told), NO_TIME), np.zeros(len(told), bool)
    micros, right = _numbers(told) if pa.types.is_floating(told.type) else _texts(told)
    given = pc.is_valid(told).to_numpy(zero_copy_only=False)
    right &= (micros >= EARLIEST) & (micros <= LATEST)
    return np.where(given & right, micros, NO_TIME), given & ~right


def _numbers(told: pa.Array) -> tuple[Ints, Bools]:
    values = pc.fill_null(told, 0.0).to_numpy()
    right = np.abs(values) <= _MOST_MILLISECONDS
    values = np.where(right, values, 0.0)
    whole = values.astype(np.int64)
    return whole * 1000 + np.rint((values - whole) * 1000).astype(np.int64), right


def _texts(told: pa.Array) -> tuple[Ints, Bools]:
    """All at once if they are written alike, else each for itself."""
    for zone in ("UTC", None):
        try:
            moments = told.cast(pa.timestamp("us", tz=zone))
        except pa.ArrowInvalid:
            continue
        micros = pc.fill_null(moments.cast(pa.int64()), 0).to_numpy()
        return micros, np.ones(len(told), bool)
    found = [None if text is None else moment(text) for text in told.to_pylist()]
    right = np.array([micros is not None for micros in found], bool)
    return np.array([micros or 0 for micros in found], np.int64), right


def _is_name(column: pa.Array) -> Bools:
    """Which rows have a name that a vertex can have."""
    if column.null_count == len(column):
        return np.zeros(len(column), bool)
    sizes = pc.fill_null(pc.binary_length(column), 0).to_numpy()
    named: Bools = (sizes > 0) & (sizes <= LONGEST)
    return named


def _too_long(columns: Columns, names: tuple[str, ...]) -> Bools:
    long = np.zeros(len(columns["type"]), bool)
    for name in names:
        sizes = pc.binary_length(columns[name])
        if (pc.max(sizes).as_py() or 0) > LONGEST:
            long |= pc.fill_null(sizes, 0).to_numpy() > LONGEST
    return long


def _or_else(own: pa.Array, groups: pa.Array, parents: Ints) -> pa.Array:
    """What elements tell of themselves, else what their group tells of them."""
    if groups.null_count == len(groups):
        return own
    given = groups.take(pa.array(parents))
    if own.null_count == len(own):
        return given
    return pc.if_else(pc.fill_null(pc.not_equal(own, ""), False), own, given)


def _names(struct: pa.StructType) -> list[str]:
    return [struct.field(at).name for at in range(struct.num_fields)]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _filtered(columns: Columns, chosen: pa.BooleanArray) -> dict[str, Any]:
    return {name: column.filter(chosen) for name, column in columns.items()}
