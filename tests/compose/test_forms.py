"""Forms know of every kind and key what the kinds know; documents are written as they are."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from headwater.compose import KINDS, Composition
from headwater.compose.forms import TYPES, document, examples, kinds, written
from headwater.compose.node import keys
from headwater.compose.violations import CompositionError
from headwater.compose.yaml_text import load
from tests.compose.strategies import COMPOSITIONS


def test_every_kind_with_every_key() -> None:
    told = {kind["kind"]: kind for kind in kinds()}
    assert list(told) == list(KINDS)
    for name, kind in KINDS.items():
        assert [key["key"] for key in told[name]["keys"]] == [key.name for key in keys(kind)]
        assert told[name]["required"] == [key.name for key in keys(kind) if key.required]
        assert all(key["doc"] for key in told[name]["keys"])
    assert json.loads(json.dumps(kinds())) == kinds()


def test_what_a_kind_reads() -> None:
    told = {kind["kind"]: kind["inputs"] for kind in kinds()}
    assert told["source"] == "none"
    assert told["filter"] == told["sink"] == "one"
    assert told["merge"] == told["join"] == told["function"] == "many"


def test_types_are_words_of_a_form() -> None:
    told = {(kind["kind"], key["key"]): key for kind in kinds() for key in kind["keys"]}
    assert {key["type"] for key in told.values()} <= {*TYPES.values(), "sql"}
    assert told["filter", "where"]["type"] == "sql"
    assert told["map", "columns"]["of"] == "sql"
    assert told["source", "keep"]["choices"] == ["none", "contributing", "alive", "all"]
    assert told["job", "runtime"]["choices"] == ["jobs", "static"]
    assert told["service", "concurrency"]["default"] == 8
    assert told["aggregate", "window"]["choices"] == ["count", "time", "value", "session"]


def test_the_examples_make_one_flow_that_breaks_no_rule() -> None:
    lines = "\n".join(examples().values()).replace("\n", "\n  ")
    weak = "weak: {filter: {from: radar, where: dbz < 20}}"
    flow = Composition.parse(f"flow: examples\nnodes:\n  {lines}\n  {weak}\n")
    assert {node.kind for node in flow.nodes.values()} == set(KINDS)
    rules = {violation.rule for violation in flow.check()}
    assert not rules, flow.check()


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind["kind"])
def test_an_example_is_the_same_as_text_and_as_a_document(kind: dict[str, object]) -> None:
    assert load(examples()[str(kind["kind"])], None).value == kind["example"]


@given(COMPOSITIONS)
def test_documents_are_written_as_compositions_are(flow: Composition) -> None:
    told = document(flow.to_yaml())
    assert told == flow.to_dict()
    assert written(told) == flow.to_yaml()


def test_what_breaks_rules_is_written_as_well() -> None:
    told = {"flow": "f", "nodes": {"a": {"filter": {"from": "gone"}}, "b": {"oops": {}}, "c": None}}
    assert document(written(told)) == told


@pytest.mark.parametrize("text", ["", "just words", "[1]", "nodes: [1]", "other: 1"])
def test_what_has_no_nodes_is_no_document(text: str) -> None:
    assert document(text) is None


def test_an_empty_flow_is_a_document() -> None:
    assert document("flow: f\nnodes:\n") == {"flow": "f", "nodes": {}}


def test_no_yaml() -> None:
    with pytest.raises(CompositionError) as error:
        document("flow: [")
    assert error.value.violations[0].rule == "file"
    with pytest.raises(CompositionError, match="nodes is"):
        written({"flow": "f", "nodes": []})
