"""A small store with everything in it that an export may stumble over."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.store import Batch, EmbeddedWriter, ResultSet
from tests.store.small import SETS, TIME, at, flow, sink, source

WINDOW = pa.struct([("start", TIME), ("end", TIME)])
ODD = pa.schema(
    [
        ("tid", pa.int64()),
        ("speed", pa.int32()),
        ("ratio", pa.float64()),
        ("ok", pa.bool_()),
        ("seen", TIME),
        ("local", pa.timestamp("us")),
        ("day", pa.date32()),
        ("price", pa.decimal128(20, 7)),
        ("blob", pa.binary()),
        ("note", pa.string()),
        ("an odd: name", pa.string()),
        ("event_time", pa.string()),
        ("tags", pa.list_(pa.string())),
    ]
)
COUNTED = pa.schema([("window", WINDOW), ("n", pa.int64()), ("note", pa.string())])
CALM = pa.schema([("tid", pa.int64()), ("note", pa.string())])

QUERY = "5f1c0b9e-7a55-4c5e-9b53-1a7ad1c0de01"
RECORDS: list[dict[str, Any]] = [
    {
        "tid": 1,
        "speed": -5,
        "ratio": 0.1,
        "ok": True,
        "seen": at(3),
        "local": datetime(2024, 5, 1, 12, 0, 0, 250_000),
        "day": date(2024, 2, 29),
        "price": Decimal("0.0000001"),
        "blob": b"\x00\xff",
        "note": 'a "b" \\ c\nd\te <&> ü 漢 \U0001f600',
        "an odd: name": "",
        "event_time": "not one",
        "tags": ["x", None, 'y"'],
    },
    {"tid": 2, "ratio": float("nan"), "note": "\x01 odd"},
    {"tid": 3, "ratio": float("inf"), "price": Decimal("12.5"), "tags": []},
    {"tid": 4, "ratio": float("-inf"), "note": None, "ok": False},
    {"tid": -(2**63), "speed": 2**31 - 1, "note": "plain"},
]


def build(folder: Path) -> Path:
    """Two flows, two sinks of the first; records that several results share, or that none has."""
    everything = flow(
        source(columns=ODD),
        source("calm", CALM),
        sink("counted", COUNTED),
        sink("late.ones", CALM, sources=["calm"]),
        query_id=QUERY,
    )
    other = flow(source(columns=CALM), sink("kept", CALM), name="other", query_id="o")
    with EmbeddedWriter.open(folder) as writer:
        writer.register(everything)
        writer.register(other)
        writer.commit(_batch(0, records={"reports": _rows(ODD, RECORDS)}, second=None))
        calm = [{"tid": 1, "note": "one"}, {"tid": 9, "note": "nine"}]
        writer.commit(
            _batch(
                1,
                {
                    "counted": _results(
                        COUNTED, (7, 10, [1, 2], [1]), (-8, 20, [2, 3, 4], None), (9, 30, [], [])
                    ),
                    "late.ones": _results(CALM, (7, 11, None, [1]), origins=("", "calm")),
                },
                {"calm": _rows(CALM, calm)},
            )
        )
        # `last` finishes the flow.
        counted = _results(COUNTED, (-(2**63), 40, [1, -(2**63)], None))
        writer.commit(replace(_batch(2, {"counted": counted}), last=True))
        kept = _results(CALM, (1, 5, [1], None), origins=("reports", ""))
        records = {"reports": _rows(CALM, calm)}
        writer.commit(Batch("o", 0, at(6), {"kept": kept}, records))
    return folder


def _batch(
    number: int,
    results: dict[str, ResultSet] | None = None,
    records: dict[str, pa.Table] | None = None,
    second: int | None = 9,
) -> Batch:
    watermark = None if second is None else at(second)
    return Batch(QUERY, number, watermark, results or {}, records or {})


def _rows(columns: pa.Schema, rows: list[dict[str, Any]]) -> pa.Table:
    """Records: the time is the place in the list, but the last has none."""
    times = [*(at(place) for place in range(len(rows) - 1)), None]
    ids = [row["tid"] for row in rows]
    head = {
        "__hw_id": pa.array(ids, pa.int64()),
        "__hw_time": pa.array(times, TIME),
        "__hw_content": pa.array(ids, pa.int64()),
    }
    own = {
        field.name: pa.array([row.get(field.name) for row in rows], field.type) for field in columns
    }
    return pa.table({**head, **own})


def _results(
    columns: pa.Schema,
    *rows: tuple[int, int, list[int] | None, list[int] | None],
    origins: tuple[str, str] = ("reports", "calm"),
) -> ResultSet:
    """Results from (id, second, ids of the first source, ids of the second)."""
    ids, seconds, first, second = zip(*rows, strict=True)
    values: dict[str, list[Any]] = {
        "window": [{"start": at(s - 10), "end": at(s)} for s in seconds],
        "n": [None if one is None else len(one) for one in first],
        "note": [f"<{one}> & 'more'" for one in ids],
        "tid": list(ids),
    }
    table = pa.table(
        {
            "__hw_id": pa.array(ids, pa.int64()),
            "__hw_time": pa.array([at(second) for second in seconds], TIME),
            **{field.name: pa.array(values[field.name], field.type) for field in columns},
        }
    )
    sets = {
        name: pa.chunked_array([pa.array(list(ones), SETS)])
        for name, ones in zip(origins, (first, second), strict=True)
        if name
    }
    return ResultSet(table, sets)
