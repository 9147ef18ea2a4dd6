"""Own columns of every type as typed text."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headwater.export.values import columns

NOON = datetime(2025, 7, 1, 12, tzinfo=UTC)
LOCAL = datetime(2025, 7, 1, 12, 0, 0, 120_000)
PAIR = pa.struct([("a", pa.int8()), ("b", pa.struct([("c", pa.float32())]))])


def told(name: str, type_: pa.DataType, *values: Any) -> list[tuple[str, str, list[str | None]]]:
    """The plain columns of one column: name, type, and the text of each value."""
    table = pa.table({name: pa.array(values, type_)})
    return [(c.name, c.type, c.of(table).to_pylist()) for c in columns(table.schema)]


@pytest.mark.parametrize(
    ("type_", "value", "xsd", "text"),
    [
        (pa.int8(), -1, "long", "-1"),
        (pa.int64(), 2**63 - 1, "long", str(2**63 - 1)),
        (pa.float32(), 0.5, "double", "0.5"),
        (pa.float64(), 1e300, "double", "1e+300"),
        (pa.float64(), float("nan"), "double", "NaN"),
        (pa.float64(), float("-inf"), "double", "-INF"),
        (pa.bool_(), False, "boolean", "false"),
        (pa.date32(), date(1, 1, 1), "date", "0001-01-01"),
        (pa.decimal128(38, 10), Decimal("1e-9"), "decimal", "0.0000000010"),
        (pa.timestamp("us", tz="Europe/Zurich"), NOON, "dateTime", "2025-07-01T12:00:00Z"),
        (pa.timestamp("ms"), LOCAL, "dateTime", "2025-07-01T12:00:00.120000"),
        (pa.binary(), b"\xfb\xff", "base64Binary", "+/8="),
        (pa.large_string(), "é", "string", "é"),
        (pa.duration("us"), timedelta(hours=1), "string", "1:00:00"),
        (pa.time64("us"), time(1, 2), "string", "01:02:00"),
        (pa.list_(pa.float64()), [1.5, float("nan"), None], "string", '[1.5, "nan", null]'),
        (pa.list_(pa.date32()), [date(2025, 1, 2)], "string", '["2025-01-02"]'),
        (pa.list_(pa.binary()), [b"a"], "string", '["YQ=="]'),
        (pa.list_(PAIR), [{"a": 1, "b": None}], "string", '[{"a": 1, "b": null}]'),
        (pa.map_(pa.string(), pa.int32()), [("ü", 1)], "string", '{"ü": 1}'),
        (pa.map_(pa.int8(), pa.decimal64(5, 2)), [(3, Decimal("1.5"))], "string", '{"3": "1.50"}'),
    ],
    ids=str,
)
def test_values(type_: pa.DataType, value: Any, xsd: str, text: str) -> None:
    assert told("x", type_, value, None) == [("x", f"xsd:{xsd}", [text, None])]


def test_the_parts_of_structs_are_columns() -> None:
    full = {"a": 1, "b": {"c": 0.25}}
    assert told("s", PAIR, full, {"a": 2, "b": None}, None) == [
        ("s.a", "xsd:long", ["1", "2", None]),
        ("s.b.c", "xsd:double", ["0.25", None, None]),
    ]


def test_names_that_clash_are_told_apart() -> None:
    schema = pa.schema([("s.a", pa.int8()), ("s", PAIR)])
    assert [c.name for c in columns(schema)] == ["s.a", "s.a_", "s.b.c"]
