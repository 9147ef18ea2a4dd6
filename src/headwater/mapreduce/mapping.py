"""A user's map function over records, one by one or in batches, and the combiner behind it.

A record at which the function raises, or gives what can't be its pairs, is rejected alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.functions.frames import as_pandas
from headwater.mapreduce.functions import FunctionMap, FunctionReduce
from headwater.mapreduce.records import LINE, TEXT, Unreadable
from headwater.streams.conforming import column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headwater.mapreduce.settings import Work

_HELD = 200_000
"""Pairs that a combiner holds before it combines them, and keys before it gives them out."""
ROW_BITS = 32
"""Of a record's id, for its number in the file; the file's number is above."""
FILE, ID, IDS = "__hw_file", "__hw_id", "__hw_ids"

_PLACE = "row"
"""In what a function of Arrow batches gives: the place of the record that a pair is of."""


class Mapper:
    """Maps the records of one file."""

    def __init__(
        self,
        work: Work,
        file: int,
        reject: Callable[[int, str, Any], None],
        *,
        combines: bool = True,
    ) -> None:
        assert isinstance(work.map, FunctionMap)
        self._work, self._map, self._file, self._reject = work, work.map, file, reject
        self._schema = work.schema
        self._combine = None
        if combines and isinstance(work.combine, FunctionReduce):
            self._combine = Combiner(work, work.combine)

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The pairs of some records, as batches of `tasks.mapped_schema`."""
        rows = batch.column(0).to_numpy()
        records = batch.select(batch.schema.names[1:])
        if self._map.takes == "record":
            pairs = self._one_by_one(rows, records)
        else:
            pairs = list(self._at_once(rows, records))
        for ids, table in pairs:
            yield from self._given(ids, table)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """What a combiner still holds."""
        if self._combine is not None and (held := self._combine.out()) is not None:
            yield mapped_batch(self._file, self._work, *held)

    # --- records one by one

    def _one_by_one(self, rows: Any, records: pa.RecordBatch) -> list[tuple[Any, pa.Table]]:
        function, width = self._map.function, len(self._schema) - 1
        given: list[Any] = (
            records.column(LINE).to_pylist()
            if self._work.format.name == TEXT
            else records.to_pylist()
        )
        made: list[tuple[int, list[tuple[Any, ...]]]] = []
        for place, record in enumerate(given):
            try:
                pairs = [_flat(pair, width) for pair in function(record)]
            except Exception as error:  # noqa: BLE001 - the user's own function
                self._reject(int(rows[place]), self._said(error), record)
                continue
            made.append((place, pairs))
        return self._tables(rows, given, made)

    def _tables(
        self, rows: Any, given: list[Any], made: list[tuple[int, list[tuple[Any, ...]]]]
    ) -> list[tuple[Any, pa.Table]]:
        """All pairs as one table; where one has the wrong type, its record is rejected."""
        places = [place for place, pairs in made for _ in pairs]
        flat = [pair for _, pairs in made for pair in pairs]
        try:
            return [(rows[places], self._table(flat))] if flat else []
        except Exception as error:  # noqa: BLE001 - whatever Arrow says of foreign values
            if len(made) == 1:
                place = made[0][0]
                self._reject(int(rows[place]), self._said(error), given[place])
                return []
        middle = len(made) // 2
        return [
            *self._tables(rows, given, made[:middle]),
            *self._tables(rows, given, made[middle:]),
        ]

    def _table(self, pairs: list[tuple[Any, ...]]) -> pa.Table:
        columns = zip(*pairs, strict=True)
        arrays = [
            column(list(values), field, "")
            for values, field in zip(columns, self._schema, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=self._schema)

    # --- records in batches

    def _at_once(self, rows: Any, records: pa.RecordBatch) -> Iterator[tuple[Any, pa.Table]]:
        """The pairs of a batch; where the function raises, of its halves, down to the record."""
        try:
            places, table = self._called(records)
        except Exception as error:  # noqa: BLE001 - the user's own function
            if records.num_rows <= 1:
                if records.num_rows:
                    record = records.to_pylist()[0]
                    event = record[LINE] if self._work.format.name == TEXT else record
                    self._reject(int(rows[0]), self._said(error), event)
                return
            middle = records.num_rows // 2
            yield from self._at_once(rows[:middle], records.slice(0, middle))
            yield from self._at_once(rows[middle:], records.slice(middle))
            return
        yield rows[places], table

    def _called(self, records: pa.RecordBatch) -> tuple[Any, pa.Table]:
        function, names = self._map.function, self._schema.names
        if self._map.takes == "pandas":
            made = function(as_pandas(records))
            table = pa.Table.from_pandas(made.loc[:, names], preserve_index=False)
            # As pandas' own methods do, `explode` above all, the index says of which row each is.
            places = made.index.to_numpy()
        else:
            batch = pa.Table.from_batches([records]) if self._map.takes == "table" else records
            made = function(batch)
            given = {name: made[name] for name in names}
            table = pa.table(given)
            places = np.arange(table.num_rows)
            if _PLACE in made.schema.names and _PLACE not in names:
                places = pa.chunked_array([made[_PLACE]]).to_numpy()
            elif table.num_rows != records.num_rows:
                raise ValueError(
                    f"{table.num_rows} pairs for {records.num_rows} records: a column {_PLACE!r} "
                    "must say of which record each is"
                )
        if len(places) and not (
            np.issubdtype(places.dtype, np.integer)
            and 0 <= places.min() <= places.max() < records.num_rows
        ):
            raise ValueError(f"{self._map.name}: the pairs' rows are not those of the records")
        arrays = [
            column(table[field.name].to_pylist(), field, "")
            if table[field.name].type != field.type
            else table[field.name].combine_chunks()
            for field in self._schema
        ]
        return places, pa.Table.from_arrays(arrays, schema=self._schema)

    # --- what comes of them

    def _given(self, rows: Any, table: pa.Table) -> Iterator[pa.RecordBatch]:
        ids = (self._file << ROW_BITS) | np.asarray(rows, np.int64)
        if self._combine is None:
            yield mapped_batch(self._file, self._work, pa.array(ids), table, None)
            return
        self._combine.add(ids, table)
        if (held := self._combine.full()) is not None:
            yield mapped_batch(self._file, self._work, *held)

    def _said(self, error: BaseException) -> str:
        return f"{self._map.name}: {type(error).__name__}: {' '.join(str(error).split())}"


class Combiner:
    """Combines the pairs of a key as they come: a value each, and the records behind it."""

    def __init__(self, work: Work, combine: FunctionReduce) -> None:
        self._work, self._combine = work, combine
        self._values: dict[tuple[Any, ...], list[Any]] = {}
        self._ids: dict[tuple[Any, ...], set[int]] = {}
        self._count = 0
        self._first = 0

    def add(self, ids: Any, table: pa.Table) -> None:
        """Take in pairs."""
        self._first = int(ids[0]) >> ROW_BITS << ROW_BITS
        columns = [each.to_pylist() for each in table.columns]
        for id_, *key, value in zip(ids.tolist(), *columns, strict=True):
            at = tuple(key)
            self._values.setdefault(at, []).append(value)
            if self._work.eager:
                self._ids.setdefault(at, set()).add(id_)
        self._count += table.num_rows

    def full(self) -> tuple[pa.Array, pa.Table, pa.Array | None] | None:
        """What is given out as too much is held; None while it is not."""
        if self._count < _HELD:
            return None
        for key, values in self._values.items():
            if len(values) > 1:
                self._values[key] = [self._combined(key, values)]
        self._count = len(self._values)
        return self.out() if self._count > _HELD // 2 else None

    def out(self) -> tuple[pa.Array, pa.Table, pa.Array | None] | None:
        """All that is held, and is then held no longer: ids, pairs, sets of records."""
        if not self._values:
            return None
        combined = [(*key, self._combined(key, v)) for key, v in self._values.items()]
        schema = self._work.schema
        try:
            arrays = [
                column(list(values), field, "")
                for values, field in zip(zip(*combined, strict=True), schema, strict=True)
            ]
        except Exception as error:
            raise Unreadable(f"{self._combine.name} gave what is no value: {error}") from error
        ids = pa.array(np.full(len(combined), self._first, np.int64))
        sets = None
        if self._work.eager:
            sets = pa.array([sorted(each) for each in self._ids.values()], pa.list_(pa.int64()))
        self._values, self._ids, self._count = {}, {}, 0
        return ids, pa.Table.from_arrays(arrays, schema=schema), sets

    def _combined(self, key: tuple[Any, ...], values: list[Any]) -> Any:
        if len(values) == 1:
            return values[0]
        try:
            return self._combine.function(key[0] if len(key) == 1 else key, values)
        except Exception as error:
            said = f"{self._combine.name}: {type(error).__name__}: {error}"
            raise Unreadable(f"its pairs of key {key!r} can't be combined: {said}") from error


def mapped_batch(
    file: int, work: Work, ids: pa.Array, table: pa.Table, sets: pa.Array | None
) -> pa.RecordBatch:
    """Pairs as a map task gives them; `sets` are of combined ones, where they are captured."""
    files = pa.array(np.full(len(ids), file, np.int64))
    columns = [files, ids, *(each.combine_chunks() for each in table.columns)]
    names = [FILE, ID, *table.column_names]
    if sets is not None:
        columns.append(sets)
        names.append(IDS)
    return pa.RecordBatch.from_arrays(columns, names)


def _flat(pair: Any, keys: int) -> tuple[Any, ...]:
    """A (key, value) as the columns of both; a key of several columns is a tuple."""
    key, value = pair
    if keys == 1:
        return (key, value)
    if not isinstance(key, tuple | list) or len(key) != keys:
        raise ValueError(f"key {key!r} has not {keys} parts")
    return (*key, value)
