"""The API against its own description: whatever is asked, it answers as it says it does."""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from headwater.server.app import application
from headwater.server.operations import description
from headwater.server.service import Service
from headwater.streams import StreamError
from tests.server.api.support import AUTH, SCHEMA, Place
from tests.support import full

DESCRIBED = description()
OPERATIONS = [
    (method, path)
    for path, methods in DESCRIBED["paths"].items()
    for method in methods
    if not path.endswith("/follow")  # these go on until one leaves
]
EXAMPLES = 100 if full() else 25
HOST = {"Host": "127.0.0.1"}
CONFORMS = [
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
KNOWN: dict[str, list[Any]] = {
    "flow": ["weather", "query-few", "traffic.standing.v1"],
    "stream": ["nums", "few", "quiet"],
    "query": ["few"],
    "sink": ["stopped", "traffic.standing.v1/stopped", "out"],
    "source": ["reports", "traffic.standing.v1/reports"],
    "name": ["reports", "stopped"],
    "to": ["reports"],
    "id": ["3", "8", "-1", '"x"', "[1]"],
    "version": [1, 2],
    "where": ["n > 2", "speed = 3", "vid like 'car%'", "true"],
    "since": ["2024-05-01T00:00:03Z", "2024-05-01"],
    "at": ["2024-05-01T00:00:05Z"],
    "limit": [1, 5, 10_000_000],
    "newest": [True],
}


@schemathesis.serializer("application/x-ndjson", "application/vnd.apache.arrow.stream")
def as_it_is(context: schemathesis.SerializationContext, value: Any) -> bytes:
    """Bodies that are texts of their own."""
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


@pytest.fixture(scope="module")
def app(service: Service) -> Iterator[Any]:
    """The application."""
    yield application(service)
    service.close()


@pytest.fixture(scope="module")
def api(app: Any) -> Any:
    """Its description, as it gives it itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return schemathesis.openapi.from_asgi("/api/openapi.json", app, headers=HOST)


def known(place: Place) -> st.SearchStrategy[dict[str, Any]]:
    """Names and ids that there are: else all that is ever asked for is unknown."""
    results = [str(one) for one in place.made.results]
    return st.fixed_dictionaries(
        {},
        optional={
            "result_id": st.sampled_from(results),
            **{name: st.sampled_from(values) for name, values in KNOWN.items()},
        },
    )


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_operation_answers_as_described(
    api: Any, place: Place, method: str, path: str
) -> None:
    operation = api[path][method.upper()]
    declared = {p["name"] for p in DESCRIBED["paths"][path][method].get("parameters", ())}

    modes = [GenerationMode.POSITIVE]
    if declared or "requestBody" in DESCRIBED["paths"][path][method]:
        modes.append(GenerationMode.NEGATIVE)

    @given(
        case=st.one_of(operation.as_strategy(generation_mode=mode) for mode in modes),
        there=known(place),
        body=st.none() | st.dictionaries(st.sampled_from([*KNOWN, "reason", "ids"]), st.text()),
        token=st.booleans(),
    )
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=not full(),
        suppress_health_check=list(HealthCheck),
    )
    def run(case: Any, there: dict[str, Any], body: Any, token: bool) -> None:
        for name in declared & there.keys():
            for where in (case.path_parameters, case.query):
                if where is not None and (name in where or where is case.query):
                    where[name] = there[name]
        if isinstance(case.body, dict) and "source" in case.body:
            case.body["source"] = there.get("source", case.body["source"])
        with contextlib.suppress(StreamError):
            place.streams.create("nums", SCHEMA, event_time="at", id="n")
        response = case.call(headers={**HOST, **(AUTH if token else {})})
        told = response.json() if response.headers["content-type"] == ["application/json"] else {}
        if response.status_code >= 500:
            assert (response.status_code, told["kind"]) in ((503, "Busy"), (503, "TimedOut")), told
        if response.status_code >= 400:
            assert isinstance(told["error"], str)
            assert isinstance(told["kind"], str)
            assert "\n" not in told["error"]
        case.validate_response(response, checks=CONFORMS)

    run()


def test_the_description_is_complete() -> None:
    names = set()
    for path, methods in DESCRIBED["paths"].items():
        for method, operation in methods.items():
            name = operation["operationId"]
            assert name not in names, "twice"
            names.add(name)
            assert name.replace("_", "").isalnum(), "a name that code can have"
            assert operation["summary"].endswith("."), f"{method} {path} says what it is for"
            assert operation["tags"]
            writes = [] not in [list(each) for each in operation["security"]]
            reads = method == "get" or path in (
                "/api/flows/check",
                "/api/flows/write",
                "/api/replay",
            )
            assert writes != reads, f"{method} {path} says whether it needs the token"
            for parameter in operation.get("parameters", ()):
                assert "schema" in parameter
            for status in ("400", "401", "404", "409", "413", "422", "429", "503"):
                schema = operation["responses"][status]["content"]["application/json"]["schema"]
                assert schema == {"$ref": "#/components/schemas/Failure"}
    schemes = DESCRIBED["components"]["securitySchemes"]
    assert schemes["token"]["scheme"] == "bearer"
    assert json.loads(json.dumps(DESCRIBED)) == DESCRIBED


def test_tables_are_described_in_both_forms() -> None:
    tables = ["/api/results", "/api/backward", "/api/forward", "/api/why-not", "/api/marks"]
    for path in (*tables, "/api/marked", "/api/jobs", "/api/graph/vertex"):
        content = DESCRIBED["paths"][path]["get"]["responses"]["200"]["content"]
        assert content["application/json"]["schema"] == {"$ref": "#/components/schemas/Table"}
        assert "application/vnd.apache.arrow.stream" in content
