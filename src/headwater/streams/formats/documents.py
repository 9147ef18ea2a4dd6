"""Events that come as JSON-like documents: JSON lines, Avro and Parquet."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa

from headwater.streams.binding import schema as bound_schema
from headwater.streams.errors import StreamError
from headwater.streams.formats.base import Record
from headwater.streams.jsonpath import compiled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.streams.binding import Binding


class _Documents:
    """Reads documents, and of each the row that the bindings say, or all of it."""

    def __init__(
        self, file: IO[bytes], name: str, bindings: Sequence[Binding], schema: pa.Schema | None
    ) -> None:
        self._file, self._name, self._bindings = file, name, list(bindings)
        self._paths = [(binding.name, compiled(binding.path)) for binding in bindings]

    def schema(self, sample: Sequence[Record]) -> pa.Schema | None:
        """The schema of the bindings, or that of the first documents."""
        if self._bindings:
            return bound_schema(self._bindings)
        rows = [record.row for record in sample if record.row is not None]
        if not rows:
            return None
        try:
            table = pa.Table.from_pylist(_complete(rows))
            return pa.schema([(name, _guess(table[name])) for name in table.column_names])
        except pa.ArrowException as error:
            raise StreamError(
                f"no schema fits the first events of {self._name} ({str(error)[:80]}); give one"
            ) from error

    def _record(self, where: str, document: Any, event: Any) -> Record:
        if not isinstance(document, dict):
            return Record(where, event, None, "not an object of named values")
        if self._paths:
            return Record(where, event, {name: find(document) for name, find in self._paths})
        return Record(where, event, document)


class JsonLines(_Documents):
    """One JSON object a line."""

    def records(self) -> Iterator[Record]:
        """Every line that is not empty."""
        for number, line in enumerate(self._file, 1):
            if not line.strip():
                continue
            where = f"{self._name}:{number}"
            try:
                document = json.loads(line)
            except (ValueError, RecursionError) as error:
                reason = f"not a JSON object on one line: {error}"
                yield Record(where, line.rstrip(b"\r\n"), None, reason)
                continue
            yield self._record(where, document, line.rstrip(b"\r\n"))


class Avro(_Documents):
    """An Avro container file."""

    def records(self) -> Iterator[Record]:
        """Every record; behind a damaged block nothing can be read."""
        import fastavro

        number = 0
        try:
            for number, document in enumerate(fastavro.reader(self._file), 1):
                yield self._record(f"{self._name}:{number}", document, document)
        except (ValueError, EOFError, KeyError, IndexError, TypeError) as error:
            if not number:
                raise StreamError(f"{self._name} is no Avro file: {error}") from error
            yield Record(f"{self._name}:{number + 1}", "", None, f"damaged from here on: {error}")


class Parquet(_Documents):
    """A Parquet file."""

    def __init__(
        self, file: IO[bytes], name: str, bindings: Sequence[Binding], schema: pa.Schema | None
    ) -> None:
        super().__init__(file, name, bindings, schema)
        import pyarrow.parquet as pq

        try:
            self._parquet = pq.ParquetFile(file)
        except (pa.ArrowException, OSError) as error:
            raise StreamError(f"{name} is no Parquet file: {error}") from error

    def schema(self, sample: Sequence[Record]) -> pa.Schema | None:
        """The file's own schema, without bindings."""
        if self._bindings:
            return bound_schema(self._bindings)
        return self._parquet.schema_arrow.remove_metadata()

    def records(self) -> Iterator[Record]:
        """Every row."""
        number = 0
        for batch in self._parquet.iter_batches(10_000):
            for row in batch.to_pylist():
                number += 1
                yield self._record(f"{self._name}:{number}", row, row)


def _guess(values: pa.ChunkedArray) -> pa.DataType:
    """The type of values; texts that are all times with a zone are times."""
    if pa.types.is_string(values.type):
        try:
            return values.cast(pa.timestamp("us", "UTC")).type
        except pa.ArrowException:
            pass
    return pa.string() if pa.types.is_null(values.type) else values.type


def _complete(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that all have every column: Arrow looks for names in the first one only."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]
