"""Whatever is sent: an answer that says what is wrong with it, and nothing is harmed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.server.api import support
from tests.server.api.sending import BODIES, DESCRIBED, JSON, PATHS, sane
from tests.server.api.support import AUTH, Place

FINE = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
SMALL = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=True, allow_infinity=True),
    st.text(alphabet=st.characters(exclude_categories=())),
    st.sampled_from(["weather", "nums", "now", "\0", "\ud800", "../../etc/passwd", "a" * 5_000]),
)
keys = st.text(max_size=8) | st.sampled_from(
    "text since document name schema event_time id sql to webhook source where ids reason "
    "mark dry_run sink result_id steps flow nodes n at k v".split()
)
values = st.recursive(
    scalars, lambda each: st.lists(each, max_size=4) | st.dictionaries(keys, each, max_size=5)
)


# --- bodies -------------------------------------------------------------------------------------


@given(
    path=st.sampled_from(BODIES),
    body=st.binary(max_size=300),
    kind=st.sampled_from(
        ["application/json", "application/x-ndjson", support.ARROW, "text/plain", "x", ""]
    ),
)
@FINE
def test_random_bytes(client: TestClient, path: str, body: bytes, kind: str) -> None:
    headers = {**AUTH, **({"Content-Type": kind} if kind else {})}
    sane(client.post(path, content=body, headers=headers))


@given(path=st.sampled_from(BODIES), body=values, ascii=st.booleans())
@settings(FINE, max_examples=150)
def test_random_json(client: TestClient, path: str, body: Any, ascii: bool) -> None:
    text = json.dumps(body, ensure_ascii=ascii).encode(errors="surrogatepass")
    sane(client.post(path, content=text, headers={**AUTH, **JSON}))


@given(path=st.sampled_from(BODIES), key=keys, value=scalars)
@FINE
def test_bodies_that_are_nearly_right(client: TestClient, path: str, key: str, value: Any) -> None:
    right: dict[str, Any] = {
        "/api/flows": {"text": support.FLOW},
        "/api/flows/check": {"text": support.FLOW},
        "/api/flows/write": {"document": {"flow": "a", "nodes": {}}},
        "/api/streams": {"name": "more", "schema": "n bigint"},
        "/api/queries": {"name": "q", "sql": "select n from nums"},
        "/api/marks": {"source": "reports", "ids": ["3"], "reason": "why"},
        "/api/erasures": {"source": "reports", "ids": ["3"], "dry_run": True},
        "/api/replay": {"sink": "stopped", "result_id": "1"},
    }.get(path, support.event(77))
    text = json.dumps({**right, key: value}).encode()
    sane(client.post(path, content=text, headers={**AUTH, **JSON}))


DEEP = 100_000
HOSTILE = {
    "a list in a list in a list": "[" * DEEP + "]" * DEEP,
    "an object in an object": '{"a":' * DEEP + "1" + "}" * DEEP,
    "never closed": '{"text":' + "[" * DEEP,
    "not a number": '{"n": NaN, "text": NaN, "source": NaN}',
    "infinite": '{"n": Infinity, "v": -Infinity}',
    "a huge number": '{"n": 1' + "0" * 5_000 + "}",
    "a number of 64 bits and one": '{"n": 18446744073709551616}',
    "a huge exponent": '{"n": 1e999999999, "v": 1e400}',
    "half a character": json.dumps(dict.fromkeys(["k", "text", "name", "source"], "\ud800")),
    "zero bytes": json.dumps(dict.fromkeys(["k", "text", "name", "source"], "a\0b")),
    "one key twice": '{"n": 1, "n": 2, "text": "a", "text": "b"}',
    "a long name": json.dumps({"name": "n" * 100_000, "schema": "n bigint", "source": "s" * 9_999}),
    "not UTF-8": b'{"text": "\xff\xfe"}',
    "nothing": "",
    "a word": "null",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bodies(client: TestClient, name: str) -> None:
    body = HOSTILE[name]
    data = body if isinstance(body, bytes) else body.encode()
    begun = time.monotonic()
    for path in BODIES:
        told = sane(client.post(path, content=data, headers={**AUTH, **JSON}))
        if name not in ("one key twice", "half a character", "zero bytes", "a word"):
            assert path.endswith("/elements") or "error" in told or "violations" in told
    assert time.monotonic() - begun < 20


TEXTS = {
    "laughs": "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(12)
    ),
    "an alias of itself": "flow: a\nnodes: &n {x: *n}\n",
    "an object of Python's": "flow: !!python/object/apply:os.system ['true']\nnodes: {}\n",
    "a tag": "flow: !!python/name:os.system\n",
    "another tag": "flow: a\nnodes: !!binary aGVsbG8=\n",
    "deep": "[" * 250_000,
    "deep braces": "{a: " * 60_000,
    "deep JSON": '{"flow": "a", "nodes": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "deep dashes": "- " * 100_000,
    "a number of many digits": f"flow: a\nnodes: {{x: {{static: {{value: {'9' * 10_000}}}}}}}\n",
    "JSON with many digits": '{"flow": "a", "nodes": {"x": {"static": {"value": '
    f"{'9' * 10_000}}}}}}}}}",
    "Python": "import os\nos.system('true')\n",
    "several documents": "flow: a\n---\nflow: b\n",
    "a zero byte": "flow: a\0b\n",
    "half a character": "flow: a\ud800\nnodes: {x: {static: {value: \ud800}}}\n",
    "many spaces": " " * 250_000,
    "a wide file": "flow: a\nnodes:\n"
    + "".join(f"  n{n}: {{static: {{value: {n}}}}}\n" for n in range(900)),
    "no end of quotes": 'flow: "' + "a\\" * 100_000,
    "a merge": "flow: a\nx: &x {y: 1}\nnodes: {<<: *x}\n",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("path", ["/api/flows", "/api/flows/check"])
def test_hostile_flow_files(client: TestClient, path: str, name: str) -> None:
    begun = time.monotonic()
    body = json.dumps({"text": TEXTS[name]}).encode()
    told = sane(client.post(path, content=body, headers={**AUTH, **JSON}))
    assert "error" in told or told["violations"] or name == "a wide file"
    assert time.monotonic() - begun < 10
    assert not (Path.cwd() / "pwned").exists()


def test_a_flow_that_is_too_long(client: TestClient) -> None:
    text = "#" * ((1 << 18) + 1)
    response = client.post("/api/flows/check", json={"text": text})
    assert response.status_code == 422
    assert "text" in sane(response)["error"]
    response = client.post("/api/flows/write", json={"document": {"flow": text, "nodes": {}}})
    assert response.status_code == 413
    nodes = {f"n{n}": {"static": {"value": n}} for n in range(1_001)}
    response = client.post("/api/flows/write", json={"document": {"flow": "a", "nodes": nodes}})
    assert (response.status_code, sane(response)["kind"]) == (422, "CompositionError")


@pytest.mark.parametrize("levels", [40, 90, 300, 480, 900])
def test_documents_that_are_deep(client: TestClient, levels: int) -> None:
    value = '{"a":[' * levels + "1" + "]}" * levels
    text = f'{{"flow": "a", "nodes": {{"x": {{"static": {{"value": {value}}}}}}}}}'
    sane(client.post("/api/flows/write", content=f'{{"document": {text}}}', headers=JSON))
    sane(client.post("/api/flows/check", json={"text": text}))
    sane(client.post("/api/flows", json={"text": text}, headers=AUTH))


# --- names --------------------------------------------------------------------------------------

ESCAPES = [
    "..%2f..%2fetc%2fpasswd",
    "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "..",
    "%2e%2e",
    "%2Fetc%2Fpasswd",
    "..%5c..%5cetc",
    "....//",
    "weather%2f..%2fweather",
    "weather%00",
    "%00",
    "%ff%fe",
    ".hidden",
    ".token",
    "a" * 3_000,
    quote("‮weather"),
    "~root",
    "-rf",
    "CON",
    "%252e%252e%252f",
]


@pytest.mark.parametrize("path", PATHS)
def test_no_name_leads_out_of_its_folder(client: TestClient, place: Place, path: str) -> None:
    before = _files(place.path)
    for escape in ESCAPES:
        url = path
        for name in ("flow", "stream", "query", "job", "node", "number", "version"):
            url = url.replace(f"{{{name}}}", escape)
        url = url.replace("{action}", "pause")
        for method in DESCRIBED[path]:
            told = client.request(method.upper(), url, headers={**AUTH, **JSON}, content=b"{}")
            assert told.status_code in (400, 404, 405, 409, 422), (method, url, told.text[:300])
            assert "root:" not in told.text
    assert _files(place.path) == before, "nothing was made or removed"


def _files(folder: Path) -> set[str]:
    skip = ("store", ".jobs")
    return {
        str(file.relative_to(folder))
        for file in folder.rglob("*")
        if not str(file.relative_to(folder)).startswith(skip)
    }


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/..%2f..%2f..%2fetc%2fpasswd",
        "//etc/passwd",
        "/%2fetc%2fpasswd",
        "/js/../../settings.py",
        "/js/..%2f..%2fsettings.py",
        "/settings.py",
        "/%00",
        "/" + "a" * 3_000,
        "/js",
        "/.git/config",
        "/js/%ff",
    ],
)
def test_the_page_serves_its_own_files_alone(client: TestClient, path: str) -> None:
    told = client.get(path)
    assert told.status_code == 404, path
    assert sane(told)["kind"] == "UnknownPath"


def test_names_of_streams_are_names(client: TestClient, place: Place) -> None:
    for name in (
        "..",
        ".",
        "../x",
        "a/b",
        "/etc",
        "",
        " ",
        "a b",
        "é",
        "a" * 101,
        ".x",
        "\0",
        "-x",
    ):
        told = client.post("/api/streams", json={"name": name, "schema": "n int"}, headers=AUTH)
        assert told.status_code == 422, name
    for schema in (
        "",
        "n",
        "n nothing",
        "n int, n int",
        "n int;",
        "__hw_x int",
        "x" * 30_000,
        "\0",
    ):
        told = client.post("/api/streams", json={"name": "some", "schema": schema}, headers=AUTH)
        assert told.status_code in (409, 422), (schema, told.text)
    assert "some" not in place.streams


# --- questions ----------------------------------------------------------------------------------

ESCAPING = [
    "true; DROP TABLE batches",
    "true); DELETE FROM batches; --",
    "true) or (true",
    "n in (select n from result_1)",
    "exists (select 1 from read_csv('/etc/passwd'))",
    "(select count(*) from read_text('/etc/passwd')) > 0",
    "read_csv('/etc/passwd') is null",
    "pg_read_file('/etc/passwd') is null",
    "getenv('HOME') is not null",
    "current_setting('threads') > '0'",
    "nextval('x') > 0",
    "n = (COPY batches TO '/tmp/x')",
    "ATTACH '/tmp/x.db'",
    "true UNION SELECT * FROM flows",
    "true ORDER BY (select 1)",
    "n = ?",
    "n = $1",
    "definition like '%secret%'",
    "(select string_agg(definition, '') from flows) like '%a%'",
    "columns(*) > 0",
    "length(repeat(vid, 1000000000)) > 0",
    "len(range(1000000000)) > 0",
    "length(lpad(vid, 1000000000, 'x')) > 0",
    "length(format('{:1000000000d}', n)) > 0",
    "(select count(*) from range(1000000000000) a, range(1000000000000) b) > 0",
    "list_reduce([1, 2], lambda x, y: x + y) > 0",
    "duckdb_secrets() is null",
    "\0",
    "'",
    '"',
    "--",
    "/*",
    "n > 1 /* ) or ( */ ; select 1",
    "(" * 3_000,
    "not " * 900 + "true",
    "n" + "+n" * 1_500 + " > 1",
    "",
    " ",
    "'\ud7ff' = vid and nothing",
]


@pytest.mark.parametrize("where", ESCAPING)
def test_conditions_that_are_more_than_that(client: TestClient, where: str) -> None:
    begun = time.monotonic()
    told = client.get("/api/results", params={"sink": "stopped", "where": where})
    assert told.status_code == 422, told.text[:300]
    assert sane(told)["kind"] == "PredicateError"
    told = client.get("/api/export", params={"sink": "stopped", "where": where})
    assert told.status_code == 422
    for path in ("/api/marks", "/api/erasures"):
        told = client.post(path, json={"source": "reports", "where": where}, headers=AUTH)
        assert told.status_code == 422, told.text[:300]
    assert time.monotonic() - begun < 5
    assert client.get("/api/marks").json()["rows"] == []


@given(where=st.text(max_size=60))
@FINE
def test_random_conditions(client: TestClient, where: str) -> None:
    told = client.get("/api/results", params={"sink": "stopped", "where": where})
    assert told.status_code in (200, 422), told.text


WORDS = (
    "n vid event_time result_id 1 'a' ( ) and or not = < like in , + || null case when end ::int"
)


@given(words=st.lists(st.sampled_from(WORDS.split()), max_size=12))
@FINE
def test_conditions_of_random_words(client: TestClient, words: list[str]) -> None:
    told = client.get("/api/results", params={"sink": "stopped", "where": " ".join(words)})
    assert told.status_code in (200, 422), told.text


@given(
    path=st.sampled_from(["/api/backward", "/api/forward", "/api/record", "/api/result"]),
    name=st.sampled_from(["stopped", "reports", "\0", "'", "no/such", "/", "a" * 499]),
    id=st.sampled_from(["1", "-1", str(2**63), str(-(2**63) - 1), str(2**70), "٣", "²", "0x1"])
    | st.text(max_size=20)
    | st.sampled_from(["[" * 1_000, "{}", '{"a": 1}', "null", "NaN", "1e5", "1.5", "[1,2]", '"3"']),
)
@settings(FINE, max_examples=120)
def test_strange_ids(client: TestClient, path: str, name: str, id: str) -> None:
    params = {"sink": name, "source": name, "result_id": id, "id": id}
    told = client.get(path, params=params)
    assert told.status_code in (200, 404, 409, 422), (told.status_code, told.text[:300])
    sane(told)
    told = client.get("/api/graph/vertex", params={"id": id, "name": name})
    assert told.status_code in (200, 404, 409, 422), told.text[:300]


@given(
    moment=st.text(max_size=12)
    | st.sampled_from(
        [
            "0001-01-01",
            "9999-12-31T23:59:59.999999Z",
            "2024-05-01T00:00:00+23:59",
            "0001-01-01T00:00:00+14:00",
            "9999-12-31T23:59:59-14:00",
            "2024-W01",
            "20240501",
            "24:00",
            "infinity",
        ]
    )
)
@FINE
def test_strange_times(client: TestClient, moment: str) -> None:
    for path, name in (("/api/results", "since"), ("/api/results", "until"), ("/api/graph", "at")):
        told = client.get(path, params={"sink": "stopped", name: moment})
        assert told.status_code in (200, 422), (path, told.text)


@given(
    after=st.text(max_size=8)
    | st.integers(-(2**70), 2**70).map(str)
    | st.sampled_from(["1:2", "9999999999999999999:-9999999999999999999", "{}", '{"a": 1}', "²"])
)
@FINE
def test_strange_places(client: TestClient, after: str) -> None:
    for path in ("/api/results?sink=stopped", "/api/streams/nums/events"):
        told = client.get(path, params={"after": after})
        assert told.status_code in (200, 409, 422), (path, told.text)
        sane(told)
