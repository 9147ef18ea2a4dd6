"""The answers of workflows: foreign names, and dependencies of one entity."""

from __future__ import annotations

import io
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.export import FORMATS, Asked
from headwater.export import export as exports
from headwater.export.answers import AnswerGraph
from headwater.export.names import Prefixes
from headwater.query import Store
from headwater.query.edges import Edges
from headwater.reduce.documents import parse_document
from tests.export.drawing import CHARACTERS
from tests.export.reading import derivations, document, exported
from tests.store.small import TIME, at


def answer(*rows: tuple[str, str, str, Any]) -> pa.Table:
    """An answer from (id, kind, job, event time)."""
    columns = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
    types = {"id": pa.string(), "kind": pa.string(), "job": pa.string(), "event_time": TIME}
    return pa.table({n: pa.array(c, t) for (n, t), c in zip(types.items(), columns, strict=True)})


SOME = answer(
    ("in-7", "entity", "count", None),
    ("hdfs://node:9000/in(8)", "entity", "count", None),
    ("hw:traffic/reports/1", "record", "traffic", at(1)),
    ("in-7", "entity", "sort", None),
    ("out 1", "entity", "count", None),
)


def read(asked: Asked, format: str = "prov-json", found: pa.Table = SOME) -> bytes:
    out = io.BytesIO()
    exports(cast(Edges, None), asked, out, format, lambda: found)
    return out.getvalue()


def test_an_answer_is_the_dependencies_of_the_entity() -> None:
    causes = [
        ("out-1", "in-7", "None"),
        ("out-1", "hdfs://node:9000/in(8)", "None"),
        ("out-1", "hw:traffic/reports/1", "None"),
        ("out-1", "out%201", "None"),
    ]
    assert derivations(document(read(Asked(entity="out-1")))) == causes
    assert derivations(document(read(Asked(entity="out-1"), "prov-n"), "provn")) == causes
    forward = derivations(document(read(Asked(entity="out-1", direction="forward"))))
    assert forward == [(cause, effect, run) for effect, cause, run in causes]


def test_both_formats_tell_the_same_with_attributes() -> None:
    both = document(read(Asked(entity="out-1")))
    assert both == document(read(Asked(entity="out-1"), "prov-n"), "provn")
    said = {str(one.identifier): dict(one.attributes) for one in both.get_records()[:5]}
    named = {name: {str(key): str(value) for key, value in of.items()} for name, of in said.items()}
    assert named["out-1"] == {"prov:type": "hw:Entity"}
    assert named["in-7"] == {"prov:type": "hw:Entity", "hw:job": "count"}
    assert named["hw:traffic/reports/1"] == {
        "prov:type": "hw:Record",
        "hw:event_time": "2024-05-01 00:00:01+00:00",
        "hw:job": "traffic",
    }


def test_prefixes_are_declared_as_what_they_say() -> None:
    uris = {
        str(one.identifier): one.identifier.uri
        for one in document(read(Asked(entity="ex:out"))).get_records()[:5]
    }
    assert uris == {
        "ex:out": "ex:out",
        "in-7": "hw:entity/in-7",
        "hdfs://node:9000/in(8)": "hdfs://node:9000/in(8)",
        "hw:traffic/reports/1": "hw:traffic/reports/1",
        "out%201": "hw:entity/out%201",
    }


@pytest.mark.parametrize("format", ["dot", "graphml"])
def test_pictures_of_an_answer(format: str) -> None:
    text = read(Asked(entity="out-1"), format).decode()
    assert text.count(" -> " if format == "dot" else "<edge ") == 4
    assert text.count("[label=" if format == "dot" else "<node ") == 5


def test_reduce_reads_the_names_back() -> None:
    parsed = parse_document(read(Asked(entity="out-1")), "j")
    assert set(parsed.names.to_pylist()) == {
        "out-1",
        "in-7",
        "hdfs://node:9000/in(8)",
        "hw:traffic/reports/1",
        "out%201",
    }


@pytest.mark.parametrize("direction", ["backward", "forward"])
def test_the_store_is_asked_in_that_direction(
    store: Store, monkeypatch: pytest.MonkeyPatch, direction: Any
) -> None:
    asked = []

    def answered(_: Store, *, entity: str) -> pa.Table:
        asked.append(entity)
        return SOME

    monkeypatch.setattr(Store, direction, answered)
    found = derivations(document(exported(store, entity="out-1", direction=direction)))
    assert asked == ["out-1"]
    assert {pair[direction == "forward"] for pair in found} == {"out-1"}


def test_nothing_found() -> None:
    asked = document(read(Asked(entity="alone"), found=answer()))
    assert [str(one.identifier) for one in asked.get_records()] == ["alone"]


ANY = st.text(CHARACTERS | st.sampled_from("ab%:/()='.,;[]-_ \\\""), min_size=1, max_size=10)


@settings(max_examples=200, deadline=None)
@given(names=st.lists(ANY, min_size=1, max_size=5, unique=True))
def test_any_name_is_one_that_prov_can_read(names: list[str]) -> None:
    table = answer(*((name, "entity", name, None) for name in names[1:]))
    graph = AnswerGraph(names[0], table, "backward")
    both = document(b"".join(FORMATS["prov-json"](graph)))
    assert both == document(b"".join(FORMATS["prov-n"](graph)), "provn")
    assert len(derivations(both)) == len(names) - 1


def test_prefixes_are_not_without_end() -> None:
    """What looks like a prefix may be part of a name; a name has one form for good all the same."""
    prefixes = Prefixes()
    first = [prefixes.qualified(f"p{number}:x") for number in range(2_000)]
    assert first[999:1001] == ["p999:x", "p1000%3Ax"]
    assert [prefixes.qualified(f"p{number}:x") for number in range(2_000)] == first
    assert len(prefixes.namespaces) == 1_002
