"""Schemas: Spark's DDL text and Arrow's types, each from the other, without a Spark session."""

from __future__ import annotations

import re
from functools import cache

import pyarrow as pa

from headwater.names import PREFIX
from headwater.streams.errors import StreamError

_SIMPLE: dict[str, pa.DataType] = {
    "byte": pa.int8(),
    "tinyint": pa.int8(),
    "short": pa.int16(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_SIZED = ("varchar", "char", "character")
_DECIMALS = ("decimal", "dec", "numeric")

_TOKEN = re.compile(
    r"\s*(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<word>[^\W\d]\w*)|(?P<number>\d+)"
    r"|'(?P<string>(?:[^'\\]|\\.)*)'|(?P<sign>[<>(),:]))"
)

_NAMES: dict[pa.DataType, str] = {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.uint8(): "smallint",
    pa.uint16(): "int",
    pa.uint32(): "bigint",
    pa.float16(): "float",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.bool_(): "boolean",
    pa.date32(): "date",
}


@cache
def parse(ddl: str) -> pa.Schema:
    """The Arrow schema that a DDL text describes.

    >>> parse("scan bigint, at timestamp, dbz array<double>").field("dbz").type
    ListType(list<element: double>)
    """
    fields = _Parser(ddl).columns()
    names = [field.name for field in fields]
    for name in names:
        if name.startswith(PREFIX):
            raise StreamError(f"column {name!r}: names with {PREFIX} are Headwater's; rename it")
        # Spark takes names that differ by case alone for one.
        if [other.lower() for other in names].count(name.lower()) > 1:
            raise StreamError(f"column {name!r} is twice in the schema {ddl!r}")
    return pa.schema(fields)


def text(schema: pa.Schema) -> str:
    """The DDL text of an Arrow schema.

    >>> text(pa.schema([("a", pa.int64()), ("b c", pa.list_(pa.struct([("x", pa.date32())])))]))
    'a bigint, `b c` array<struct<x: date>>'
    """
    pieces = []
    for field in schema:
        end = "" if field.nullable else " not null"
        pieces.append(f"{_quoted(field.name)} {type_text(field.type, field.name)}{end}")
    return ", ".join(pieces)


def type_text(kind: pa.DataType, column: str = "") -> str:
    """An Arrow type in Spark's words."""
    if kind in _NAMES:
        return _NAMES[kind]
    if pa.types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return f"array<{type_text(kind.value_type, column)}>"
    if pa.types.is_map(kind):
        return f"map<{type_text(kind.key_type, column)}, {type_text(kind.item_type, column)}>"
    if pa.types.is_struct(kind):
        parts = [f"{_quoted(part.name)}: {type_text(part.type, column)}" for part in kind]
        return f"struct<{', '.join(parts)}>"
    if pa.types.is_dictionary(kind):
        return type_text(kind.value_type, column)
    if pa.types.is_null(kind):
        return "void"
    raise StreamError(f"column {column!r}: Spark has no type for Arrow's {kind}; cast it first")


class _Parser:
    """Reads the columns of a DDL text, as Spark's `StructType.fromDDL` does."""

    def __init__(self, ddl: str) -> None:
        self._ddl, self._at = ddl, 0
        self._tokens: list[tuple[str, str]] = []
        at = 0
        while ddl[at:].strip():
            found = _TOKEN.match(ddl, at)
            if found is None:
                raise self._wrong(ddl[at:].strip())
            kind = found.lastgroup or ""
            self._tokens.append((kind, found[kind].replace("``", "`")))
            at = found.end()

    def columns(self) -> list[pa.Field]:
        """Every column, up to the end of the text."""
        fields = self._fields()
        if self._at < len(self._tokens):
            raise self._wrong(self._tokens[self._at][1])
        return fields

    def _fields(self) -> list[pa.Field]:
        """Names and types between commas."""
        fields = [self._field()]
        while self._take(","):
            fields.append(self._field())
        return fields

    def _field(self) -> pa.Field:
        kind, name = self._next()
        if kind not in ("word", "quoted"):
            raise self._wrong(name)
        self._take(":")  # which Spark lets one leave out, or put
        made = self._type(name)
        required = False
        if self._take("not"):
            if not self._take("null"):
                raise self._wrong("not")
            required = True
        if self._take("comment"):
            self._next()
        return pa.field(name, made, nullable=not required)

    def _type(self, column: str) -> pa.DataType:
        kind, word = self._next()
        name = word.lower()
        if kind != "word":
            raise StreamError(
                f"column {column!r} has no type; write for instance '{column} bigint'"
            )
        if name in _SIMPLE:
            return _SIMPLE[name]
        if name in _SIZED:
            self._numbers(1)
            return pa.string()
        if name in _DECIMALS:
            precision, scale = self._numbers(2) if self._peek("(") else (10, 0)
            return pa.decimal128(precision, scale)
        made: pa.DataType
        if name == "array" and self._take("<"):
            made = pa.list_(pa.field("element", self._type(column)))
        elif name == "map" and self._take("<"):
            key = self._type(column)
            self._require(",")
            made = pa.map_(key, self._type(column))
        elif name == "struct" and self._take("<"):
            made = pa.struct(self._fields())
        else:
            raise StreamError(f"column {column!r}: type {word} can't be in a stream")
        self._require(">")
        return made

    def _numbers(self, most: int) -> list[int]:
        """One number in brackets, or two."""
        self._require("(")
        numbers = []
        while True:
            kind, number = self._next()
            if kind != "number":
                raise self._wrong(number)
            numbers.append(int(number))
            if len(numbers) == most or not self._take(","):
                break
        self._require(")")
        return numbers if len(numbers) == most else [*numbers, 0]

    def _next(self) -> tuple[str, str]:
        self._at += 1
        return self._tokens[self._at - 1] if self._at <= len(self._tokens) else ("", "its end")

    def _peek(self, text: str) -> bool:
        kind, found = self._tokens[self._at] if self._at < len(self._tokens) else ("", "")
        return kind in ("sign", "word") and found.lower() == text

    def _take(self, text: str) -> bool:
        if self._peek(text):
            self._at += 1
            return True
        return False

    def _require(self, text: str) -> None:
        if not self._take(text):
            raise self._wrong(self._next()[1])

    def _wrong(self, at: str) -> StreamError:
        return StreamError(
            f"{self._ddl!r} is not a schema, at {at!r}; write for instance 'id bigint, at "
            "timestamp, name string'"
        )


def _quoted(name: str) -> str:
    plain = name.isidentifier() and name.isascii()
    return name if plain else f"`{name.replace('`', '``')}`"
