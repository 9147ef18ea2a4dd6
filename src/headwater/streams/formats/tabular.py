"""Events as lines of comma-separated values, with the columns' names in the first."""

from __future__ import annotations

import csv
import io
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.streams.errors import StreamError
from headwater.streams.formats.base import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.streams.binding import Binding

_GUESSES = (pa.int64(), pa.float64(), pa.bool_(), pa.timestamp("us", "UTC"), pa.timestamp("us"))


class Csv:
    """A CSV file; a binding's path is the name of a column, or a slash and the name."""

    def __init__(
        self, file: IO[bytes], name: str, bindings: Sequence[Binding], schema: pa.Schema | None
    ) -> None:
        self._name, self._bindings = name, list(bindings)
        text = io.TextIOWrapper(file, "utf-8-sig", errors="replace", newline="")
        self._lines = csv.reader(text)
        try:
            self._header = next(self._lines)
        except StopIteration:
            raise StreamError(f"{name} is empty: its first line names the columns") from None
        self._texts = set()
        if schema is not None:
            self._texts = {f.name for f in schema if pa.types.is_string(f.type)}
        self._columns = {b.path.lstrip("/").strip(): b for b in bindings}
        for column in self._columns:
            if column not in self._header:
                raise StreamError(
                    f"{name} has no column {column!r}; it has {', '.join(self._header)}"
                )

    def schema(self, sample: Sequence[Record]) -> pa.Schema | None:
        """The types that all of the first values can be read as; text otherwise."""
        from headwater.streams.binding import schema as bound_schema

        if self._bindings:
            return bound_schema(self._bindings)
        rows = [record.row for record in sample if record.row is not None]
        return pa.schema([(name, _guess([row[name] for row in rows])) for name in self._header])

    def records(self) -> Iterator[Record]:
        """Every line after the first."""
        while True:
            try:
                cells = next(self._lines)
            except StopIteration:
                return
            except csv.Error as error:
                yield Record(self._where(), "", None, f"not CSV: {error}")
                continue
            if not cells:
                continue
            event = ",".join(cells)
            if len(cells) != len(self._header):
                reason = f"{len(cells)} values for {len(self._header)} columns"
                yield Record(self._where(), event, None, reason)
                continue
            yield Record(self._where(), event, self._row(cells))

    def _row(self, cells: list[str]) -> dict[str, Any]:
        named = dict(zip(self._header, cells, strict=True))
        if self._columns:
            named = {binding.name: named[column] for column, binding in self._columns.items()}
        return {name: self._value(name, text) for name, text in named.items()}

    def _value(self, name: str, text: str) -> str | None:
        """An empty cell is an empty text where the column is one, else nothing."""
        return text if text or name in self._texts else None

    def _where(self) -> str:
        return f"{self._name}:{self._lines.line_num}"


def _guess(values: list[str | None]) -> pa.DataType:
    texts = pa.array(values, pa.string())
    if texts.null_count == len(texts):
        return pa.string()
    for kind in _GUESSES:
        try:
            pc.cast(texts, kind)
        except pa.ArrowException:
            continue
        return kind
    return pa.string()
