"""Files of each format become events; what is bad becomes a dead letter and stops nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headwater.streams import StreamError, Streams
from headwater.streams.binding import Binding, parse
from headwater.streams.intake import publish_file

LAT = "lat := /radar/location/centerlat : NUMBER"
RADAR = """<?xml version="1.0"?>
<radar id="KIND">
  <location><centerlat>{lat}</centerlat><centerlon>-86</centerlon></location>
  <cell/><cell/>
</radar>
"""


def publish(opened: Streams, path: Path, content: str, *bindings: str, **given: Any) -> Any:
    path.write_text(content)
    return publish_file(
        opened, "s", path, bindings=[parse(b) for b in bindings], create=True, **given
    )


def rows(opened: Streams) -> list[dict[str, Any]]:
    return opened.table("s").to_pylist()


def letters(opened: Streams) -> list[tuple[str, str]]:
    return [
        (letter["where"].rpartition("/")[2], letter["reason"])
        for letter in opened.letters("s").read()
    ]


def test_xml_is_bound_by_xpath(opened: Streams, tmp_path: Path) -> None:
    path = tmp_path / "radar.xml"
    bindings = [LAT, "cells := count(/radar/cell) : INTEGER", "id := /radar/@id : STRING"]
    done = publish(opened, path, RADAR.format(lat=40) + RADAR.format(lat=41.5), *bindings)
    assert rows(opened) == [
        {"lat": 40.0, "cells": 2, "id": "KIND"},
        {"lat": 41.5, "cells": 2, "id": "KIND"},
    ]
    assert (done.published, done.rejected) == (2, 0)


def test_broken_xml_takes_no_other_document_with_it(opened: Streams, tmp_path: Path) -> None:
    good = "<radar><location><centerlat>{}</centerlat></location></radar>\n"
    broken = "<radar><location><centerlat>9</location></radar>\n<radar>\n<location>\n"
    text = good.format(1) + broken + good.format(2) + good.format("north") + "<radar/>\n"
    done = publish(opened, tmp_path / "r.xml", text, LAT)
    assert rows(opened) == [{"lat": 1.0}, {"lat": 2.0}, {"lat": None}]
    assert done.rejected == 3
    told = sorted(letters(opened))
    assert told[0][0] == "r.xml:2"
    assert told[0][1].startswith("not XML: Opening and ending tag mismatch")
    assert told[1:] == [
        ("r.xml:3", "not XML: its root element does not end"),
        ("r.xml:6", "column 'lat': 'north' is not a double"),
    ]


def test_xml_reads_no_other_file(opened: Streams, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("42")
    evil = f'<!DOCTYPE r [<!ENTITY x SYSTEM "file://{tmp_path}/secret">]><r><a>&x;</a></r>\n'
    publish(opened, tmp_path / "evil.xml", evil, "a := /r/a : STRING")
    assert [row["a"] for row in rows(opened)] in ([None], ["&x;"], [])


def test_json_lines(opened: Streams, tmp_path: Path) -> None:
    lines = [
        '{"scan": 1, "at": "2025-01-01T00:00:00Z", "dbz": [1, 2.5]}',
        '{"scan": 1.5}',
        '{"scan": 3, "at": "noon"}',
        "{broken",
        "[1, 2]",
        "",
        '{"scan": 4, "height": 2}',
        '{"scan": 99999999999999999999}',
        '{"scan": "5", "at": "2025-01-01T02:00:00+02:00"}',
    ]
    done = publish(
        opened,
        tmp_path / "scans.jsonl",
        "\n".join(lines),
        schema="scan bigint, at timestamp, dbz array<double>",
    )
    at = datetime(2025, 1, 1, tzinfo=UTC)
    assert rows(opened) == [
        {"scan": 1, "at": at, "dbz": [1.0, 2.5]},
        {"scan": 5, "at": at, "dbz": None},
    ]
    assert (done.published, done.rejected) == (2, 6)
    reasons = dict(letters(opened))
    assert reasons["scans.jsonl:2"] == "column 'scan': 1.5 is not a bigint"
    assert reasons["scans.jsonl:3"] == "column 'at': 'noon' is not a timestamp"
    assert reasons["scans.jsonl:4"].startswith("not a JSON object on one line")
    assert reasons["scans.jsonl:5"] == "not an object of named values"
    assert reasons["scans.jsonl:7"] == "column 'height' is not in the schema"
    assert reasons["scans.jsonl:8"] == "column 'scan': 99999999999999999999 is not a bigint"


def test_json_is_bound_by_jsonpath(opened: Streams, tmp_path: Path) -> None:
    event = {"radar": {"location": {"centerlat": "40"}, "cells": [{"dbz": 4}, {"dbz": 5}]}}
    bindings = [
        LAT,
        "second := $.radar.cells[1].dbz : NUMBER",
        "cells := count($.radar['cells'][*]) : INTEGER",
        "strong := $.radar.strong : BOOLEAN",
    ]
    publish(opened, tmp_path / "r.json", json.dumps(event), *bindings)
    assert rows(opened) == [{"lat": 40.0, "second": 5.0, "cells": 2, "strong": None}]


def test_csv_and_its_schema_by_its_values(opened: Streams, tmp_path: Path) -> None:
    text = 'id,at,name,ok,x\n1,2025-01-01T00:00:00Z,"a,b",true,1\n2,,,false,2.5\n3,4\n'
    done = publish(opened, tmp_path / "t.csv", text)
    assert opened.declaration("s").schema == (
        "id bigint, at timestamp, name string, ok boolean, x double"
    )
    assert rows(opened) == [
        {"id": 1, "at": datetime(2025, 1, 1, tzinfo=UTC), "name": "a,b", "ok": True, "x": 1.0},
        {"id": 2, "at": None, "name": None, "ok": False, "x": 2.5},
    ]
    assert dict(done.reasons) == {"2 values for 5 columns": 1}


def test_csv_columns_are_bound_by_name(opened: Streams, tmp_path: Path) -> None:
    publish(opened, tmp_path / "t.csv", "a,b\n1,x\nz,y\n", "n := a : INTEGER")
    assert rows(opened) == [{"n": 1}]
    assert letters(opened) == [("t.csv", "column 'n': 'z' is not a bigint")] or letters(opened) == [
        ("t.csv:3", "column 'n': 'z' is not a bigint")
    ]
    with pytest.raises(StreamError, match="has no column 'c'; it has a, b"):
        publish_file(opened, "s", tmp_path / "t.csv", bindings=[Binding("n", "c", "INTEGER")])


def test_avro_and_parquet(opened: Streams, tmp_path: Path) -> None:
    fields = [{"name": "n", "type": "long"}, {"name": "s", "type": ["null", "string"]}]
    schema = {"type": "record", "name": "r", "fields": fields}
    with (tmp_path / "t.avro").open("wb") as out:
        fastavro.writer(out, schema, [{"n": 1, "s": "x"}, {"n": 2, "s": None}])
    pq.write_table(pa.table({"n": [3], "s": ["y"]}), tmp_path / "t.parquet")
    publish_file(opened, "s", tmp_path / "t.avro", create=True)
    publish_file(opened, "s", tmp_path / "t.parquet")
    assert opened.table("s").to_pydict() == {"n": [1, 2, 3], "s": ["x", None, "y"]}
    (tmp_path / "not.avro").write_text("hello")
    with pytest.raises(StreamError, match="is no Avro file"):
        publish_file(opened, "s", tmp_path / "not.avro")
    (tmp_path / "not.parquet").write_text("hello")
    with pytest.raises(StreamError, match="is no Parquet file"):
        publish_file(opened, "s", tmp_path / "not.parquet")


def test_a_file_under_a_key_is_published_once(
    opened: Streams, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it was cut off, and in pieces of another size."""
    path = tmp_path / "n.jsonl"
    path.write_text("".join(f'{{"n": {n}}}\n' if n != 3 else "bad\n" for n in range(10)))
    opened.create("s", "n bigint")
    monkeypatch.setattr("headwater.streams.intake._PIECE", 4)

    def interrupt(done: Any) -> None:
        if done.published > 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish_file(opened, "s", path, key="file", progress=interrupt)
    monkeypatch.setattr("headwater.streams.intake._PIECE", 3)
    done = publish_file(opened, "s", path, key="file")
    assert (done.skipped, done.published) == (8, 2)
    assert opened.table("s")["n"].to_pylist() == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert publish_file(opened, "s", path, key="file").skipped == 10
    assert opened.describe("s").dead_letters == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lat", "is not a binding; write for instance"),
        ("lat := : NUMBER", "is not a binding"),
        ("lat := /a/b", "is not a binding"),
        ("lat := /a/b : FLOAT", "type 'FLOAT' .* is none of NUMBER, INTEGER"),
        ("the-lat := /a/b : NUMBER", "'the-lat' .* is not a name"),
    ],
)
def test_what_is_no_binding_is_refused(text: str, said: str) -> None:
    with pytest.raises(StreamError, match=said):
        parse(text)


@pytest.mark.parametrize("path", ["a.b", "$..a", "$.a[?(@.b)]", "/a//b", "/a/@b"])
def test_paths_that_are_not_understood_are_refused(
    opened: Streams, tmp_path: Path, path: str
) -> None:
    with pytest.raises(StreamError, match="path '.*"):
        publish(opened, tmp_path / "x.json", "{}", f"a := {path} : NUMBER")


def test_a_wrong_xpath_is_refused(opened: Streams, tmp_path: Path) -> None:
    with pytest.raises(StreamError, match="path '/a\\[' is not XPath"):
        publish(opened, tmp_path / "x.xml", "<a/>", "a := /a[ : NUMBER")
