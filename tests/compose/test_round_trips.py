"""YAML, JSON, Python and Composition say the same, whichever way round."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings

from headwater.compose import KINDS, Composition, difference
from headwater.compose.building import Building
from headwater.compose.curve import sequential
from headwater.compose.node import keys
from headwater.compose.schema import FILE, schema, text
from tests.compose.figures import WEATHER, figure_31
from tests.compose.strategies import COMPOSITIONS

VALIDATOR = jsonschema.Draft202012Validator(schema())


def from_python(text: str) -> Composition:
    names: dict[str, Composition] = {}
    exec(text, names)
    return names["flow"]


@settings(max_examples=100, deadline=None)
@given(COMPOSITIONS)
def test_every_form_reads_back_as_the_same_composition(flow: Composition) -> None:
    python = from_python(flow.to_python())
    yaml = Composition.parse(flow.to_yaml())
    assert python == flow
    assert yaml == flow
    assert Composition.parse(flow.to_json()) == flow
    assert list(yaml) == list(flow)
    assert from_python(yaml.to_python()).to_yaml() == flow.to_yaml()
    assert not difference(flow, yaml)
    VALIDATOR.validate(flow.to_dict())


def test_the_weather_flow_survives_every_form() -> None:
    flow = Composition.parse(WEATHER)
    for form in (flow.to_yaml(), flow.to_json()):
        assert Composition.parse(form) == flow
    assert from_python(flow.to_python()) == flow
    VALIDATOR.validate(flow.to_dict())
    assert flow != figure_31()


def test_a_python_file_is_read_by_running_it(tmp_path: Path) -> None:
    flow = figure_31()
    (tmp_path / "flow.py").write_text(flow.to_python())
    assert Composition.read(tmp_path / "flow.py") == flow


def test_a_flow_of_thousands_of_nodes_is_written_as_python_that_can_be_run() -> None:
    flow = sequential(1_200)
    assert from_python(flow.to_python()) == flow


def test_the_published_schema_is_current() -> None:
    assert FILE.read_text() == text(), "run python -m headwater.compose.schema on schema.json"
    VALIDATOR.check_schema(schema())


@pytest.mark.parametrize(
    "node",
    [
        {"filter": {"from": "a", "wher": "x"}},
        {"filter": {"from": "a"}},
        {"filtr": {"from": "a", "where": "x"}},
        {"filter": {"from": "a", "where": "x"}, "merge": {"from": ["a", "b"]}},
        {"aggregate": {"from": "a", "window": {"time": "ten minutes"}, "columns": {}}},
        {"job": {"from": "a", "run": "x", "slots": 0}},
        {"source": {"stream": "a", "cardinality": 1}},
        {"job": {"from": "a", "steps": {}}},
        {"job": {"from": "a", "steps": {"event": {"run": "x"}}}},
        {"job": {"from": "a", "steps": {"b-c": {"run": "x"}}}},
        {"job": {"from": "a", "steps": {"b": {"run": "x", "call": "m:f"}}}},
        {"job": {"from": "a", "steps": {"b": {"after": "c"}}}},
        {"job": {"from": "a", "steps": {"b": {"run": ""}}}},
        {"job": {"from": "a", "steps": {"b": {"spark": "f"}}}},
    ],
    ids=json.dumps,
)
def test_the_schema_refuses_what_the_reader_refuses(node: dict[str, object]) -> None:
    told = {"flow": "x", "nodes": {"n": node}}
    assert not VALIDATOR.is_valid(told)
    with pytest.raises(Exception, match="n"):
        Composition.parse(json.dumps(told))


@pytest.mark.parametrize("kind", KINDS)
def test_the_method_of_each_kind_takes_its_keys(kind: str) -> None:
    """The builder's parameters are written out for editors: they must be those of the nodes."""
    taken = dict(inspect.signature(getattr(Building, kind)).parameters)
    assert list(taken)[:3] == ["self", "name", "inputs"]
    own = {key.attribute: key for key in keys(KINDS[kind])}
    assert set(taken) - {"self", "name"} == set(own)
    for name, key in own.items():
        default = taken[name].default
        assert (default is inspect.Parameter.empty) == key.required, name
        assert key.required or default == key.default, name
