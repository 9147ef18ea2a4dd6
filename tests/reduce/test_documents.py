"""PROV-JSON documents: statements as elements, attributes of activities, bundles, bad ones."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from prov.constants import XSD_STRING
from prov.model import Literal, ProvDocument

from headwater.reduce.blocks import NO_TIME, vertex_ids
from headwater.reduce.documents import holds_document, parse_document
from headwater.reduce.parsing import Parsed

PRIMER: dict[str, Any] = {
    "prefix": {"ex": "http://example.org/", "hw": "https://headwater.invalid/"},
    "entity": {"ex:article": {"prov:type": "ex:Article"}, "ex:chart": {}, "ex:data": {}},
    "activity": {
        "ex:compose": {
            "prov:startTime": "2025-01-01T00:00:00Z",
            "prov:endTime": "2025-01-01T00:00:10Z",
            "hw:function": {"$": "compose", "type": "xsd:string"},
            "hw:node": ["n1"],
        }
    },
    "agent": {"ex:derek": {}},
    "used": {
        "_:u1": {"prov:activity": "ex:compose", "prov:entity": "ex:data"},
        "_:u2": {
            "prov:activity": "ex:compose",
            "prov:entity": "ex:region",
            "prov:time": "2025-01-01T00:00:05Z",
            "hw:function": "read",
            "hw:execution": "run-1",
        },
    },
    "wasGeneratedBy": {
        "_:g1": [
            {"prov:activity": "ex:compose", "prov:entity": "ex:chart", "hw:output": True},
            {"prov:activity": "ex:other", "prov:entity": "ex:sketch"},
        ]
    },
    "wasDerivedFrom": {
        "_:d1": {
            "prov:generatedEntity": "ex:article",
            "prov:usedEntity": "ex:chart",
            "prov:activity": "ex:compose",
        }
    },
    "hadMember": {"_:m1": {"prov:collection": "ex:all", "prov:entity": ["ex:a", {"$": "ex:b"}]}},
    "wasAssociatedWith": {"_:w1": {"prov:activity": "ex:compose", "prov:agent": "ex:derek"}},
}


def parsed(document: object, job: str = "J") -> Parsed:
    return parse_document(json.dumps(document, indent=1).encode(), job)


def rows(found: Parsed) -> list[tuple[Any, ...]]:
    names = dict(zip(found.ids.tolist(), found.names.to_pylist(), strict=True))
    return [
        (
            names[row["source"]],
            names[row["destination"]],
            row["function"],
            row["node"],
            None if row["time"] == NO_TIME else row["time"] // 1_000_000 - 1_735_689_600,
        )
        for row in found.edges.to_pylist()
    ]


def reasons(found: Parsed) -> list[tuple[int, str]]:
    told = found.rejected.to_pylist()
    return [(row["where"], row["reason"]) for row in told]


def test_a_document() -> None:
    found = parsed(PRIMER)
    assert rows(found) == [
        ("ex:compose", "ex:data", "compose", "n1", 0),
        ("ex:compose", "ex:region", "read", "n1", 5),
        ("ex:chart", "ex:compose", "compose", "n1", 10),
        ("ex:sketch", "ex:other", None, None, None),
        ("ex:article", "ex:chart", None, None, None),
        ("ex:all", "ex:a", None, None, None),
        ("ex:all", "ex:b", None, None, None),
    ]
    assert found.filtered == {"entity": 3, "activity": 1, "agent": 1, "wasAssociatedWith": 1}
    assert found.rejected.num_rows == 0
    assert found.kept.tolist() == vertex_ids(pa.array(["ex:chart"]), "entity").tolist()
    [run] = vertex_ids(pa.array(["run-1"]), "activity").tolist()
    assert found.edges["execution"][1].as_py() == run


def test_the_order_of_sections_does_not_matter() -> None:
    """An activity may come after what it tells of."""
    turned = dict(reversed(PRIMER.items()))
    assert sorted(rows(parsed(turned)), key=str) == sorted(rows(parsed(PRIMER)), key=str)


def test_bundles() -> None:
    inner = {"used": PRIMER["used"]}
    found = parsed({"activity": PRIMER["activity"], "bundle": {"ex:b1": inner, "ex:b2": {}}})
    assert rows(found) == rows(parsed(PRIMER))[:2]
    found = parsed({"bundle": {"ex:b1": {"bundle": {}, **inner}}})
    assert len(rows(found)) == 2
    assert reasons(found) == [(3, "a bundle can't be in a bundle")]


def test_what_another_package_writes() -> None:
    document = ProvDocument()
    document.add_namespace("ex", "http://example.org/")
    document.add_namespace("hw", "http://example.org/hw#")
    start, end = datetime(2025, 1, 1), datetime(2025, 1, 1, 0, 0, 9, tzinfo=UTC)
    told = {"hw:function": "map", "hw:node": "n1"}
    document.activity("ex:a", start, end, told)
    document.used("ex:a", "ex:e", other_attributes={"hw:function": Literal("read", XSD_STRING)})
    document.wasGeneratedBy("ex:o", "ex:a", other_attributes={"hw:output": True})
    document.wasGeneratedBy("ex:p", "ex:a", time=start)
    document.hadMember("ex:c", "ex:o")
    document.wasAttributedTo("ex:e", "ex:someone")
    document.bundle("ex:b").wasDerivedFrom("ex:x", "ex:o", "ex:a")
    found = parse_document(document.serialize(indent=1).encode(), "J")
    assert found.rejected.num_rows == 0
    assert rows(found) == [
        ("ex:a", "ex:e", "read", "n1", 0),
        ("ex:o", "ex:a", "map", "n1", 9),
        ("ex:p", "ex:a", "map", "n1", 0),
        ("ex:c", "ex:o", None, None, None),
        ("ex:x", "ex:o", None, None, None),
    ]
    assert found.filtered == {"activity": 1, "wasAttributedTo": 1}
    assert found.kept.tolist() == vertex_ids(pa.array(["ex:o"]), "entity").tolist()


def test_bad_statements_are_rejected_with_their_lines() -> None:
    text = b"""{
  "used": {
    "_:u1": {"prov:activity": "a"},
    "_:u2": {"prov:activity": "a", "prov:entity": "e", "prov:time": "noon"},
    "_:u3": {"prov:activity": "a", "prov:entity": "e"},
    "_:u4": 5
  },
  "wasDerivedFrom": {
    "_:d1": {"prov:generatedEntity": "e", "prov:usedEntity": "e"}},
  "activity": {
    "a": {"prov:startTime": "yesterday"}},
  "wasGenerated": {},
  "entity": []
}"""
    found = parse_document(text, "J")
    assert [row[:2] for row in rows(found)] == [("a", "e")]
    assert [(where + 1, why[:36]) for where, why in reasons(found)] == [
        (3, "used '_:u1': `entity` is missing"),
        (4, "used '_:u2': `time` 'noon' is neithe"),
        (6, "used '_:u4': a statement is an objec"),
        (9, "wasDerivedFrom '_:d1': a self-loop: "),
        (11, "activity 'a': `time` 'yesterday' is "),
        (12, "section 'wasGenerated' is unknown"),
        (13, "section `entity` is not an object"),
    ]


def test_another_job() -> None:
    said = {"_:u1": {"prov:activity": "a", "prov:entity": "e", "hw:job": "K"}}
    [(_, reason)] = reasons(parsed({"used": said}))
    assert reason == "used '_:u1': it is of job 'K', not of 'J'"
    assert len(rows(parsed({"used": said}, "K"))) == 1


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (
            b'{"used": {"_:u1": {"prov:activity": "a", "prov:entity": "e"}}',
            1,
            "not JSON: Expecting '}'",
        ),
        (b'{"used": {\n"_:u1": {"prov:activity": }}}', 2, "not JSON: Expecting value at column 27"),
        (b'{"used": {}} {}', 1, "not JSON: Extra data at column 14"),
        (b'{"used": {},}', 1, "not JSON: Expecting a name in quotes"),
        (b"[]", 1, "not JSON: Expecting '{'"),
        (b"", 1, "not JSON: Expecting '{'"),
        (b'{"prefix": {"ex": "\xff"}}', 1, "not UTF-8: invalid start byte at byte"),
        (b'{"prefix": ' + b"[" * 99_999 + b"]" * 99_999 + b"}", 1, "not JSON that can be read"),
    ],
)
def test_what_is_no_document_is_rejected_as_a_whole(text: bytes, line: int, reason: str) -> None:
    found = parse_document(text, "J")
    assert found.edges.num_rows == 0
    [(where, why)] = reasons(found)
    assert where + 1 == line
    assert why.startswith(reason)


@pytest.mark.parametrize(
    ("text", "document"),
    [
        (json.dumps(PRIMER, indent=2), True),
        ('\ufeff\n{\n "bundle": {\n', True),
        (json.dumps(PRIMER), False),
        (json.dumps(PRIMER) + "\n" + json.dumps(PRIMER), False),
        ('{"type": "used",\n "activity": "a"}', False),
        ('{"type": "used", "activity": "a"}\n', False),
        ('{"other": {\n', False),
        ("", False),
        ("nonsense", False),
    ],
)
def test_documents_are_told_from_lines(tmp_path: Path, text: str, document: bool) -> None:
    file = tmp_path / "file.json"
    file.write_text(text)
    assert holds_document(file) == document
