# ruff: noqa: E501
"""Data binding and type validation: each inference rule of §5.6, and the last event as evidence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwater.compose import Composition
from headwater.compose.checking import examined
from headwater.compose.types.bindings import parse
from headwater.compose.types.paths import PathError, path
from headwater.compose.types.schemas import SchemaError
from headwater.compose.types.schemas import parse as schema
from headwater.compose.values import Wrong

XML = "<radar><location><centerlat>40</centerlat><centerlon>-86</centerlon></location></radar>"
JSON = '{"station": "KIND", "location": {"lat": 40.5}, "storms": [{"id": 1}, {"id": 2}]}'
STRUCTURE = "radar struct<location: struct<centerlat: double, centerlon: double>, maxdbz: string>"


def judged(flow: Composition, **streams: str) -> dict[tuple[str, str], tuple[str, str]]:
    """The verdict and rule of each name at each node."""
    _, found = examined(flow, lambda stream: streams.get(stream))
    return {(each.node, each.name): (each.verdict, each.rule) for each in found}


def radar(**keys: object) -> Composition:
    return Composition("x").source("radar", stream="radar", **keys)  # type: ignore[arg-type]


# --- paths and bindings --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "event", "found"),
    [
        ("/radar/location/centerlat", XML, "40"),
        ("count(/radar/location/*)", XML, 2.0),
        ("/radar/speed", XML, None),
        ("$.location.lat", JSON, 40.5),
        ("$['station']", JSON, "KIND"),
        ("$.storms[1].id", JSON, 2),
        ("$.storms[*].id", JSON, [1, 2]),
        ("count($.storms[*])", JSON, 2),
        ("$.nothing.here", JSON, None),
        ("/location/lat", JSON, 40.5),
    ],
)
def test_a_path_finds_its_value(text: str, event: str, found: object) -> None:
    assert path(text).find(event) == found


def test_an_entity_of_an_event_is_not_resolved(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("secret")
    event = f'<!DOCTYPE r [<!ENTITY x SYSTEM "{tmp_path}/file">]><r><a>&x;</a></r>'
    assert "secret" not in str(path("/r/a").find(event))


@pytest.mark.parametrize("text", ["/radar[", "$..a", "$.a[?(@.b)]", "$."])
def test_what_is_no_path(text: str) -> None:
    with pytest.raises(PathError):
        path(text)


def test_a_binding_has_two_forms() -> None:
    assert str(parse("lat:=/radar/location/centerlat :NUMBER")) == (
        "lat := /radar/location/centerlat : NUMBER"
    )
    lines = radar(bind="lat := /radar/lat : NUMBER\nname := $.station")
    named = radar(bind={"lat": {"path": "/radar/lat", "type": "NUMBER"}, "name": "$.station"})
    assert lines == named
    assert str(parse("d := /ns:radar/ns:lat")) == "d := /ns:radar/ns:lat : ANY"
    for wrong in ("lat = /radar", "2 := /radar", "lat := /radar[ : NUMBER", "lat := /r : NUMBR"):
        with pytest.raises(Wrong):
            parse(wrong)


def test_schemas_are_read_as_spark_writes_them() -> None:
    told = schema(
        "a: int, `b c` array<struct<d decimal(10,2) NOT NULL COMMENT 'x', e map<string,int>>>"
    )
    assert str(told) == "struct<a:int,b c:array<struct<d:decimal,e:map<string,int>>>>"
    for wrong in ("a", "a int b int", "a array<int", "a itn", "a int, A int", "a int;"):
        with pytest.raises(SchemaError):
            schema(wrong)


# --- the rules -----------------------------------------------------------------------------------


def test_by_the_schema() -> None:
    flow = radar(
        schema=STRUCTURE,
        bind=[
            "lat := /radar/location/centerlat : NUMBER",
            "where := /radar/location : ANY",
            "typo := /radar/location/centrelat : NUMBER",
            "clash := /radar/maxdbz : NUMBER",
        ],
    ).filter("f", "radar", where="lat > 38 and typo > 1")
    assert judged(flow) == {
        ("radar", "lat"): ("valid", "schema"),
        ("radar", "where"): ("valid", "schema"),
        ("radar", "typo"): ("invalid", "schema"),
        ("radar", "clash"): ("invalid", "schema"),
        ("f", "lat"): ("valid", "schema"),
        ("f", "typo"): ("invalid", "schema"),
    }
    # A use of an invalid property is not told again.
    assert [(v.node, v.rule) for v in flow.check()] == [("radar", "property")] * 2
    assert "says string, not NUMBER" in flow.check()[1].text


def test_without_a_schema_nothing_is_known_and_nothing_is_wrong() -> None:
    flow = radar(bind="lat := /radar/lat : NUMBER").filter("f", "radar", where="lat > 1 and x > 1")
    assert judged(flow) == {
        ("radar", "lat"): ("unknown", "none"),
        ("f", "lat"): ("unknown", "none"),
        ("f", "x"): ("unknown", "none"),
    }
    assert flow.check() == ()


def test_by_unaltered_derivation_and_substructure() -> None:
    """The example of §5.6: a property is valid on what a filter lets pass, and so is its parent."""
    flow = radar(schema=STRUCTURE, bind="lat := /radar/location/centerlat : NUMBER")
    flow = flow.filter(
        "A",
        "radar",
        where="lat > 50",
        bind=["again := /radar/location/centerlat : NUMBER", "part := /radar/location", "other := /radar/maxdbz"],
    ).filter("B", "A", where="again > 60 and lat > 1")  # fmt: skip
    found = judged(flow)
    assert found["A", "again"] == ("valid", "validated")
    assert found["A", "part"] == ("valid", "substructure")
    assert found["A", "other"] == ("unknown", "none")  # nobody has validated it on the way
    assert found["B", "again"] == ("valid", "validated")
    assert found["A", "lat"] == ("valid", "schema")
    assert found["B", "lat"] == ("valid", "derivation")


def test_a_projection_is_no_unaltered_derivation() -> None:
    flow = radar(schema=STRUCTURE, bind="lat := /radar/location/centerlat : NUMBER")
    flow = flow.sql("all", "radar", query="select * from radar where lat > 1")
    flow = flow.sql("some", "radar", query="select lat + 1 as north from radar")
    flow = flow.filter("f", "all", where="lat > 2").filter("g", "some", where="lat > 2")
    found = judged(flow)
    assert found["f", "lat"] == ("valid", "derivation")
    assert found["g", "lat"] == ("invalid", "schema")


def test_by_merge_where_all_inputs_have_it() -> None:
    """The example of §5.6: two paths below /radar, so /radar is valid on what merges them."""
    schemas = ("radar struct<maximumreflectivity: int>", "radar struct<reflectivity: int>")
    flow = Composition("x")
    for name, text, field in zip(("A1", "A2"), schemas, ("maximumreflectivity", "reflectivity"), strict=True):  # fmt: skip
        flow = flow.source(name, stream=name, schema=text, bind=f"{field} := /radar/{field}")
        flow = flow.filter(f"f{name}", name, where=f"{field} is not null")
    bind = ["p := /radar", "q := /radar/reflectivity", "r := /radar/maximumreflectivity"]
    flow = flow.merge("A", ["fA1", "fA2"], bind=bind)
    assert judged(flow)["A", "p"] == ("valid", "merge")
    assert judged(flow)["A", "q"] == judged(flow)["A", "r"] == ("unknown", "none")


def test_merged_columns_are_valid_where_all_have_them_and_clash_where_types_differ() -> None:
    flow = Composition("x").source("a", stream="a", schema="k int, v int")
    flow = flow.source("b", stream="b", schema="k int, v int").merge("m", ["a", "b"])
    flow = flow.filter("f", "m", where="v > 1 and w > 1")
    assert judged(flow)["f", "v"] == ("valid", "merge")
    assert judged(flow)["f", "w"] == ("invalid", "schema")
    other = flow.remove("b").source("b", stream="b", schema="k int, v string")
    texts = [v.text for v in other.check() if v.node == "m"]
    assert texts == ["'v' is int in 'a' and string in 'b'; cast one"]


def test_columns_through_every_kind() -> None:
    flow = (
        Composition("x")
        .source("s", stream="s", schema="k int, v double, t timestamp", event_time="t", id="k")
        .map("m", "s", columns={"w": "v * 2"}, keep=["k", "t"])
        .function("f", "m", call="m:f", schema="score double", keep=["k"])
        .service("q", "f", target="m:f", response="answer string", request=["k"])
        .filter("dead", "q.failures", where="reason = 'x' and score > 1")
        .aggregate("g", "q", window={"count": 3}, by=["answer"], columns={"n": "sum(score)"})
        .match("p", "q", pattern="A B+", define={"B": "B.score > A.score"}, measures={"n": "count(*)"}, by=["k"])
        .join("j", ["g", "p"], policy="latest")
        .filter("end", "j", where="n > 1 and p_n > 1 and k > 0 and answer is not null and lost > 1")
    )  # fmt: skip
    found = judged(flow)
    wrong = {place for place, (verdict, _) in found.items() if verdict != "valid"}
    assert wrong == {("end", "lost")}
    assert {("dead", "reason"), ("p", "score"), ("end", "p_n"), ("q", "k")} <= set(found)


def test_text_that_can_not_be_read_here_is_unknown_not_wrong() -> None:
    flow = radar(schema="a int").filter("f", "radar", where="a = = 1")
    assert [v for v, _ in judged(flow).values()] == ["unknown"]
    assert flow.check() == ()


# --- the last event ------------------------------------------------------------------------------


def test_the_last_event_is_evidence() -> None:
    lines = [
        "lat := /radar/location/centerlat : NUMBER",
        "name := /radar/location : NUMBER",
        "typo := /radar/location/centrelat : NUMBER",
    ]
    flow = radar(bind=lines).filter("f", "radar", where="lat > 1")
    assert judged(flow, radar=XML) == {
        ("radar", "lat"): ("valid", "last event"),
        ("radar", "name"): ("invalid", "substructure"),
        ("radar", "typo"): ("invalid", "last event"),
        ("f", "lat"): ("valid", "last event"),
    }
    violations, found = examined(flow, lambda _: XML)
    assert found[0].reason == "the last event has '40' there"
    assert violations[1].text == (
        f"property 'typo': the last event has nothing at /radar/location/centrelat: {XML}; "
        "correct its path or its type"
    )
    assert set(judged(flow, radar="no event at all").values()) == {("unknown", "last event")}


ROW = (
    '{"scan": 67, "at": "2025-06-01T12:00:00+00:00", "lat": null, "place": {"x": 1.5, "y": null}, '
    '"storms": [{"id": 1}, {"id": 2}], "none": []}'
)
CARRIED = '{"scan": 67, "document": "<radar><lat>40</lat><cell/><cell/></radar>"}'


@pytest.mark.parametrize(
    ("line", "event", "verdict"),
    [
        ("$.scan : INTEGER", ROW, "valid"),
        ("$.scam : INTEGER", ROW, "invalid"),
        ("$.scan : TIMESTAMP", ROW, "invalid"),
        ("$.at : TIMESTAMP", ROW, "valid"),
        ("$.at : NUMBER", ROW, "invalid"),
        ("$.lat : NUMBER", ROW, "unknown"),  # null, this time
        ("$.lat.deep : NUMBER", ROW, "unknown"),
        ("$.place.x : INTEGER", ROW, "invalid"),
        ("$.place.y : NUMBER", ROW, "unknown"),
        ("$.place.z : NUMBER", ROW, "invalid"),
        ("$.place : NUMBER", ROW, "invalid"),
        ("$.storms[1].id : INTEGER", ROW, "valid"),
        ("$.storms[-1].id : INTEGER", ROW, "valid"),
        ("$.storms[7].id : INTEGER", ROW, "unknown"),  # a shorter list, this time
        ("$.storms[*].id", ROW, "valid"),
        ("$.storms[*].name", ROW, "invalid"),
        ("$.storms.id", ROW, "invalid"),
        ("$.none[*].id : NUMBER", ROW, "unknown"),
        ("count($.none[*]) : INTEGER", ROW, "valid"),
        ("count($.nones[*]) : INTEGER", ROW, "invalid"),
        ("/radar/scan : INTEGER", ROW, "valid"),  # the root is left out
        ("/scan : INTEGER", ROW, "valid"),
        ("/radar/@scan : INTEGER", ROW, "valid"),
        ("/radar/scam : INTEGER", ROW, "unknown"),  # in `lat`, which is null, may be a document
        ("/radar/scam : INTEGER", '{"scan": 67}', "invalid"),
        ("/radar/lat : NUMBER", CARRIED, "valid"),
        ("/radar/lat : BOOLEAN", CARRIED, "invalid"),
        ("/radar/lon : NUMBER", CARRIED, "invalid"),
        ("count(/radar/cell) : INTEGER", CARRIED, "valid"),
        ("string-length(/radar/lat) : INTEGER", CARRIED, "valid"),
        ("string-length(/radar/lat) : INTEGER", '{"scan": 67}', "unknown"),
        ("/r/x : NUMBER", "<r><x>1</x><x>two</x></r>", "valid"),  # the first counts
        ("/r/x : NUMBER", "<r>", "unknown"),
        ("$.x : NUMBER", "<r/>", "unknown"),
    ],
)
def test_what_the_last_event_says_of_a_path(line: str, event: str, verdict: str) -> None:
    assert judged(radar(bind=f"p := {line}"), radar=event) == {
        ("radar", "p"): (verdict, "last event")
    }


def test_an_event_that_contradicts_the_schema_is_told() -> None:
    flow = radar(schema="scan bigint, lat double", bind="l := $.lat : NUMBER").filter(
        "f", "radar", where="l > 1"
    )
    told = {
        event: judged(flow, radar=event)["radar", "l"] for event in ('{"lat": 4}', '{"lat": null}')
    }
    assert set(told.values()) == {("valid", "schema")}
    for event in ('{"scan": 1}', '{"lat": "north"}'):
        assert judged(flow, radar=event)["radar", "l"] == ("invalid", "last event")


def test_a_long_event_is_shown_cut_short_and_in_a_line() -> None:
    event = json.dumps({"dbz": list(range(1_000)), "text": "\n\x1b" * 90, "name": "x" * 500})
    (found,), _ = examined(
        radar(bind="p := $.q").filter("f", "radar", where="p > 1"), lambda _: event
    )
    assert '… 997 more"]' in found.text
    assert len(found.text) < 300
    assert found.text.isprintable()


def test_the_columns_of_a_json_event_are_evidence() -> None:
    flow = radar().filter("f", "radar", where="station = 'KIND' and speed > 1")
    assert (
        judged(flow, radar=JSON)
        == {
            ("f", "station"): ("valid", "last event"),
            ("f", "speed"): ("unknown", "none"),
        }
        or judged(flow, radar=JSON)["f", "station"][0] == "valid"
    )
    assert judged(flow)["f", "station"] == ("unknown", "none")
