"""Values as the command line reads and writes them."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
import typer

from headwater.cli import values


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("7", 7),
        ("-9223372036854775808", -(2**63)),
        ("bus-7", "bus-7"),
        ('"7"', "7"),
        ('["bus", 7]', ("bus", 7)),
    ],
)
def test_ids(typed: str, value: object) -> None:
    assert values.parse_id(typed) == value
    assert values.parse_ids([typed]) == value
    assert values.parse_ids([typed, "1"]) == [value, 1]


def test_an_unknown_option_is_no_id() -> None:
    with pytest.raises(typer.BadParameter, match="no such option: --jsn"):
        values.parse_id("--jsn")


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        (None, None),
        ("2025-01-01", datetime(2025, 1, 1, tzinfo=UTC)),
        ("2025-01-01T10:00:00Z", datetime(2025, 1, 1, 10, tzinfo=UTC)),
        ("2025-01-01T10:00+02:00", datetime(2025, 1, 1, 8, tzinfo=UTC)),
    ],
)
def test_times(typed: str | None, value: datetime | None) -> None:
    assert values.parse_time(typed) == value


def test_json_keeps_every_value() -> None:
    table = pa.table(
        {
            "big": pa.array([2**53 + 1, None], pa.int64()),
            "at": pa.array(
                [datetime(2025, 1, 1, 0, 0, 0, 1, UTC), None], pa.timestamp("us", "UTC")
            ),
            "local": pa.array([datetime(2025, 1, 1), None], pa.timestamp("us")),
            "day": [date(2025, 1, 1), None],
            "price": [Decimal("1.10"), None],
            "x": [float("nan"), float("-inf")],
            "raw": [b"\x00\xff", None],
            "window": [{"start": 1, "end": 2}, None],
            "list": [[1, 2], []],
            "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int32())),
            "name": ["Zoë", ""],
        }
    )
    first, second = json.loads("".join(values.json_rows(table)))
    assert first == {
        "big": 9007199254740993,
        "at": "2025-01-01T00:00:00.000001Z",
        "local": "2025-01-01T00:00:00",
        "day": "2025-01-01",
        "price": "1.10",
        "x": "NaN",
        "raw": "AP8=",
        "window": {"start": 1, "end": 2},
        "list": [1, 2],
        "map": {"a": 1},
        "name": "Zoë",
    }
    assert second["big"] is None
    assert second["x"] == "-Infinity"


def test_an_empty_table_is_an_empty_array() -> None:
    assert json.loads("".join(values.json_rows(pa.table({"a": pa.array([], pa.int64())})))) == []


def test_rows_span_batches() -> None:
    table = pa.table({"n": range(2_500)})
    assert [row["n"] for row in json.loads("".join(values.json_rows(table)))] == [*range(2_500)]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (True, "yes"),
        (12, "12"),
        (datetime(2025, 1, 1, 0, 2, 59, 999999, UTC), "2025-01-01 00:02:59.999999"),
        (
            {
                "start": datetime(2025, 1, 1, 23, 59, tzinfo=UTC),
                "end": datetime(2025, 1, 2, 0, 1, tzinfo=UTC),
            },
            "2025-01-01 23:59:00 – 2025-01-02 00:01:00",
        ),
        ({"a": [1, None]}, '{"a": [1, null]}'),
        (timedelta(seconds=90), "0:01:30"),
        (b"ab", "YWI="),
        ("naïve – [b]", "naïve – [b]"),
        ("two\nlines\x1b[2J", "two\\nlines\\x1b[2J"),
    ],
)
def test_text_in_tables(value: object, shown: str) -> None:
    assert values.text(value) == shown


def test_other_zones_stay_as_they_are() -> None:
    zone = timezone(timedelta(hours=2))
    assert values.plain(datetime(2025, 1, 1, tzinfo=zone)) == "2025-01-01T00:00:00+02:00"
