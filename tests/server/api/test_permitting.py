"""Flows that come by REST: no code, no files and no calls but those that were allowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from headwater.compose import Composition, CompositionError
from headwater.server.permitting import (
    is_among,
    is_inside,
    is_under,
    refusals,
    require_permitted,
    unsafe,
)
from headwater.server.settings import Settings
from tests.server.api import support
from tests.server.api.support import AUTH, SCHEMA, Place

SOURCE = f'  nums: {{source: {{stream: nums, schema: "{SCHEMA}", event_time: at, id: n}}}}'


def flow(*lines: str) -> str:
    nodes = "\n".join(f"  {line}" for line in lines)
    return f"flow: sent\nnodes:\n{SOURCE}\n{nodes}\n"


def refused(text: str, **settings: Any) -> list[str]:
    found = refusals(Composition.parse(text), Settings(**settings))
    return [f"{each.node}: {each.text}" for each in found]


CODE = {
    "function": 'x: {function: {from: nums, call: "os:system", schema: "n bigint"}}',
    "a job's command": 'x: {job: {from: nums, run: "rm -rf /", schema: "n bigint"}}',
    "a job's function": 'x: {job: {from: nums, call: "os:system", schema: "n bigint"}}',
    "a job on Spark": 'x: {job: {from: nums, spark: "os:system", schema: "n bigint"}}',
    "a job's steps": 'x: {job: {from: nums, steps: {a: {run: "true"}}, schema: "n bigint"}}',
    "a static call": 'x: {static: {call: "os:getcwd"}}',
    "a service's function": 'x: {service: {from: nums, target: "os:system", response: "n bigint"}}',
}


@pytest.mark.parametrize("what", CODE)
def test_code_is_refused(client: TestClient, what: str) -> None:
    text = flow(CODE[what])
    told = client.post("/api/flows", json={"text": text}, headers=AUTH)
    assert told.status_code == 422, told.text
    (wrong, *_) = told.json()["violations"]
    assert (wrong["rule"], wrong["node"]) == ("permission", "x")
    assert "--allow-code" in wrong["text"]
    told = client.post("/api/flows/check", json={"text": text})
    assert "permission" in {each["rule"] for each in told.json()["violations"]}
    assert told.json()["code"] == ["x"]
    assert not [each for each in refused(text, allow_code=True) if "code" in each]


def test_a_flow_in_python_is_not_read(client: TestClient, tmp_path: Path) -> None:
    made = tmp_path / "made"
    text = f"open({str(made)!r}, 'w')\nimport headwater\nflow = headwater.Composition('a')\n"
    told = client.post("/api/flows", json={"text": text}, headers=AUTH)
    assert told.status_code == 422
    assert not made.exists()


# --- files --------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder that may be read, beside one that may not."""
    (tmp_path / "root" / "in").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "x.parquet").touch()
    (tmp_path / "root" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "rooted").mkdir()
    return tmp_path / "root"


OUTSIDE = [
    "/etc/passwd",
    "{root}/../secret",
    "{root}/in/../../secret",
    "{root}/link",
    "{root}/link/x.parquet",
    "{root}/l*",
    "{root}/*/x.parquet",
    "{root}/[l]ink",
    "{root}/{{../secret,in}}",
    "{root}/{{in,link}}",
    "{root}/\\.\\./secret",
    "{root}ed",
    "/{root}/in",
    "file://{root}/in",
    "file:{root}/in",
    "file:///etc/passwd",
    "s3://bucket/x",
    "s3a://bucket/x",
    "hdfs://host/x",
    "http://host/x",
    "jar:file:/x!/y",
    "~/x",
    "/proc/self/environ",
]
INSIDE = ["{root}/in", "{root}/in/", "{root}/in/*", "{root}/in/a?.parquet", "{root}/none"]


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("kind", ["source", "static"])
def test_files_outside(root: Path, path: str, kind: str) -> None:
    place = json.dumps(path.format(root=root))
    text = flow(f'x: {{{kind}: {{format: parquet, path: {place}, schema: "n bigint"}}}}')
    (told,) = refused(text, roots=(root,))
    assert "is in none of the folders that may be read" in told
    assert refused(text, roots=()), "no root, no files"


@pytest.mark.parametrize("path", INSIDE)
def test_files_inside(root: Path, path: str) -> None:
    place = json.dumps(path.format(root=root))
    text = flow(f'x: {{source: {{format: parquet, path: {place}, schema: "n bigint"}}}}')
    assert refused(text, roots=(root,)) == []


def test_links_below_a_path(root: Path) -> None:
    """Spark reads what the links in a folder lead to, so all of them must stay inside."""
    text = flow(f'x: {{source: {{format: parquet, path: "{root}", schema: "n bigint"}}}}')
    (told,) = refused(text, roots=(root,))
    assert f"has a link in it that leads elsewhere ({root}/link)" in told
    (root / "link").unlink()
    assert refused(text, roots=(root,)) == []
    (root / "in" / "again").symlink_to(root)
    (root / "in" / "file").symlink_to(root.parent / "secret" / "x.parquet")
    (told,) = refused(text, roots=(root,))
    assert f"({root}/in/file)" in told
    (told,) = refused(text.replace(f'"{root}"', f'"{root}/i*"'), roots=(root,))
    assert f"({root}/in/file)" in told
    (root / "in" / "file").unlink()
    assert refused(text, roots=(root,)) == []
    (root.parent / "rooted" / "day=1").symlink_to(root.parent / "secret")
    (root / "in" / "more").symlink_to(root.parent / "rooted")
    (told,) = refused(text, roots=(root, root.parent / "rooted"))
    assert told.endswith("rooted/day=1); take it away")


def test_relative_paths_are_of_the_service(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    assert is_inside("in", (root,))
    assert is_inside("in/a.parquet", (Path("in"),))
    assert not is_inside("link", (root,))
    assert not is_inside(".", (root / "in",))
    assert not is_inside("in\0/../..", (root,))


@pytest.mark.parametrize(
    "option",
    [
        "path: /etc/passwd",
        "Path: /etc/passwd",
        "basePath: /etc",
        "badRecordsPath: /tmp/x",
        "checkpointLocation: /tmp/x",
        "cleanSource: delete",
        "sourceArchiveDir: /tmp/x",
        "avroSchemaUrl: http://x",
        "url: jdbc:x",
        "fs.defaultFS: hdfs://evil",
        "fs.file.impl: evil.FileSystem",
        "parquet.crypto.factory.class: evil.Factory",
        "spark.hadoop.fs.s3a.endpoint: evil",
        "driverClass: x",
    ],
)
def test_options_that_lead_elsewhere(root: Path, option: str) -> None:
    reading = f'format: csv, path: {root}/in, schema: "n bigint"'
    text = flow(f"x: {{source: {{{reading}, options: {{{option}}}}}}}")
    (told,) = refused(text, roots=(root,))
    assert "is not taken" in told


def test_options_that_do_not(root: Path) -> None:
    options = "{header: true, sep: ';', maxFilesPerTrigger: 1, pathGlobFilter: '*.csv', mode: x}"
    text = flow(
        f'x: {{source: {{format: csv, path: {root}/in, options: {options}, schema: "n bigint"}}}}'
    )
    assert refused(text, roots=(root,)) == []


@pytest.mark.parametrize(
    "name", ["kafka", "jdbc", "socket", "delta", "avro", "binaryFile", "a.b.C"]
)
def test_other_formats_need_code_allowed(name: str) -> None:
    text = flow(f'x: {{source: {{format: {name}, schema: "n bigint"}}}}')
    assert any("is none of" in each for each in refused(text))
    assert refused(text, allow_code=True) == []


# --- calls --------------------------------------------------------------------------------------

HOOK = 'x: {{sink: {{from: nums, alert: {{webhook: "{url}"}}}}}}'
CALL = 'x: {{service: {{from: nums, target: "{url}", response: "n bigint"}}}}'


@pytest.mark.parametrize("line", [HOOK, CALL])
def test_addresses_must_be_allowed(client: TestClient, line: str) -> None:
    text = flow(line.format(url="http://169.254.169.254/latest/meta-data"))
    told = client.post("/api/flows", json={"text": text}, headers=AUTH)
    assert told.status_code == 422
    assert "--allow-url" in told.text
    allowed = ("https://hooks.example/in/",)
    for url in ("https://hooks.example/in", "https://hooks.example/in/a?b=c"):
        assert refused(flow(line.format(url=url)), allow_urls=allowed) == []
    for url in (
        "https://hooks.example/inner",
        "https://hooks.example/in/../out",
        "https://hooks.example/in/%2e%2e/out",
        "https://hooks.example/in/%252e%252e/out",
        "https://hooks.example/",
        "http://hooks.example/in/a",
        "https://hooks.example.evil/in/a",
        "https://evil.example/https://hooks.example/in/",
    ):
        assert refused(flow(line.format(url=url)), allow_urls=allowed), url
    assert not is_under("https://hooks.example/in\\..\\out", "https://hooks.example")


def test_a_query_s_webhook_must_be_allowed(client: TestClient) -> None:
    body = {"name": "hooked", "sql": "select n from nums", "webhook": "http://evil.example/"}
    told = client.post("/api/queries", json=body, headers=AUTH)
    assert told.status_code == 422
    assert "--allow-url" in told.text


MAIL = "x: {{sink: {{from: nums, alert: {{email: {to}}}}}}}"


def test_mail_goes_to_allowed_addresses_alone(client: TestClient) -> None:
    text = flow(MAIL.format(to="everybody@example.org"))
    told = client.post("/api/flows", json={"text": text}, headers=AUTH)
    assert told.status_code == 422
    assert "--allow-mail" in told.text
    allowed = ("ops@example.org", "@team.example")
    for to in ("ops@example.org", "OPS@Example.org", "[ops@example.org, any.one@team.example]"):
        assert refused(flow(MAIL.format(to=to)), allow_mail=allowed) == []
    for to in (
        "dev@example.org",
        "xops@example.org",
        "ops@example.org.evil",
        "a@sub.team.example",
        "[ops@example.org, a@evil.example]",
    ):
        assert len(refused(flow(MAIL.format(to=to)), allow_mail=allowed)) == 1, to
    for several in ("a@evil.example,b@team.example", "<a@evil.example>@team.example", "a;@x"):
        assert not is_among(several, "@team.example")


# --- SQL ----------------------------------------------------------------------------------------

ESCAPES = [
    "reflect('java.lang.System', 'exit', 1) is null",
    "REFLECT('java.lang.System', 'getenv') is null",
    "java_method('java.lang.System', 'getenv') is null",
    "try_reflect('java.lang.System', 'getenv') is null",
    "`reflect`('java.lang.System', 'getenv') is null",
    "system.builtin.reflect('a', 'b') is null",
    "`system`.`builtin`.`java_method`('a', 'b') is null",
    "reflect /* a comment */ ('a', 'b') is null",
    "re/**/flect('a') or reflect\n('a', 'b')",
    "-- a comment\nreflect('a', 'b')",
    "'a' || reflect('a', 'b') || 'b'",
    "r'\\' || reflect('a', 'b') || r'\\'",
    "transform(array(1), x -> reflect('a', 'b'))",
    "identifier('reflect')('a', 'b')",
    "IDENTIFIER /**/ ('ref' || 'lect')('a', 'b')",
    "\"reflect\"('a', 'b')",
    "n in (select 1)",
    "n = (select max(value) from text.`/etc/passwd`)",
    "exists (select * from parquet.`/etc/passwd`)",
    "n in (table text.`/etc/passwd`)",
    "exists (TABLE text.`/etc/passwd`)",
    "n in (from text.`/etc/passwd` |> where true)",
    "n in (with a as (table b) table a)",
    "n = (map n using 'sh' as x)",
    "n = (MAP n USING r'sh')",
    'n = (reduce n using "sh")',
    "n in (select transform(n) using 'sh' from nums)",
    "n = (values (1))",
    "read_files('/etc/passwd') is null",
    "v > 3 and 'unterminated",
    "v > 3 /* unterminated",
]
PLACES = {
    "filter": "x: {{filter: {{from: nums, where: {sql}}}}}",
    "map": "x: {{map: {{from: nums, columns: {{a: {sql}}}}}}}",
    "aggregate": "x: {{aggregate: {{from: nums, window: {{count: 5}}, columns: {{a: {sql}}}}}}}",
    "join": "x: {{join: {{from: [nums, nums], policy: interval, where: {sql}}}}}",
    "match": "x: {{match: {{from: nums, pattern: A B, define: {{B: {sql}}}, "
    "measures: {{n: A.n}}}}}}",
    "measures": "x: {{match: {{from: nums, pattern: A B, define: {{B: B.v > 1}}, "
    "measures: {{n: {sql}}}}}}}",
}


@pytest.mark.parametrize("sql", ESCAPES)
def test_expressions_only_compute(client: TestClient, sql: str) -> None:
    assert unsafe(sql) is not None
    for what, line in PLACES.items():
        text = flow(line.format(sql=json.dumps(sql)))
        try:
            composition = Composition.parse(text)
        except CompositionError:
            assert what in ("join", "match", "measures"), "its own rules may refuse it before"
            continue
        with pytest.raises(CompositionError, match="permission|not allowed|runs code|read|written"):
            require_permitted(composition, Settings())
        told = client.post("/api/flows", json={"text": text}, headers=AUTH)
        assert told.status_code == 422, what
        # Allowing Python code does not make SQL another thing.
        assert refused(text, allow_code=True), what


QUERIES = [
    "select reflect('a', 'b') as x from nums",
    "select `java_method`('a', 'b') as x from nums",
    "select transform(n) using 'sh' from nums",
    "select transform(n) using r'sh' from nums",
    "select transform(n) using 'sh' as (x string) from nums",
    "select * from parquet.`/etc/passwd`",
    "select * from nums join text.`/etc/passwd` t on true",
    "select * from nums where n in (select value from text.`/etc/passwd`)",
    "select (select max(value) from csv.`/etc/passwd`) as x from nums",
    "with a as (select * from json.`/etc/passwd`) select * from nums, a",
    "select * from nums union all select * from orc.`/x`",
    "select * from spark_catalog.default.nums",
    "select * from default.nums",
    "select * from identifier('text.`/etc/passwd`')",
    "select identifier('reflect')('a', 'b') from nums",
    "select * from read_files('/etc/passwd')",
    "select * from nums, lateral (select * from text.`/etc/passwd`)",
    "select * from range(1000000000000)",
    "from text.`/etc/passwd` select *",
    "table text.`/etc/passwd`",
    "select 1 from nums; drop table nums",
    "create table x as select * from nums",
    "insert overwrite directory '/tmp/x' using csv select * from nums",
    "insert into nums select * from nums",
    "set spark.sql.warehouse.dir=/",
    "add jar '/tmp/x.jar'",
    "create function f as 'evil.Class' using jar '/tmp/x.jar'",
    "load data inpath '/etc/passwd' into table nums",
    "cache table x as select * from nums",
    "explain select * from nums",
    "describe nums",
    "execute immediate 'select 1'",
    "begin select 1; end",
    "select * from nums where 'unterminated",
    "",
    "(" * 500,
]


@pytest.mark.parametrize("sql", QUERIES)
def test_queries_read_their_inputs_alone(client: TestClient, sql: str) -> None:
    text = flow(f"x: {{sql: {{from: nums, query: {json.dumps(sql)}}}}}")
    told = client.post("/api/flows", json={"text": text}, headers=AUTH)
    assert told.status_code == 422, told.text
    assert told.json()["kind"] == "CompositionError"
    told = client.post("/api/flows/check", json={"text": text})
    assert told.json()["violations"]
    body = {"name": "sent", "sql": sql}
    told = client.post("/api/queries", json=body, headers=AUTH)
    assert told.status_code in (404, 409, 422), told.text
    assert "only shows" not in told.text, "it was refused for what it is"


FINE = [
    "v > 3",
    "upper(k) = 'REFLECT' or k = 'select' or k = 'using'",
    "extract(year from at) = 2026 and trim(both ' ' from k) = 'a'",
    "v is distinct from 3 and n between 1 and 5",
    "case when v > 1 then 'a' else 'b' end = k",
    "transform(array(n), x -> x + 1)[0] > 3",
    "(map('a', n))['a'] > 3 and k rlike r'^\\d+$'",
    "n in (1, 2) and (k like 'a%' or not (v < 3))",
    "at > timestamp '2026-01-01' - interval 1 hour -- and so on",
    "`table` = 1 and `from` = 2",
]


@pytest.mark.parametrize("sql", FINE)
def test_what_only_computes_is_taken(sql: str) -> None:
    assert unsafe(sql) is None
    assert refused(flow(PLACES["filter"].format(sql=json.dumps(sql)))) == []


def test_queries_that_are_taken() -> None:
    for sql in (
        "select n, v * 2 as w from nums where v > 3",
        "with a as (select * from nums) select a.n from a join nums using (n)",
        "select k, count(*) as c from nums group by k",
        "select n from nums where n in (select n from nums)",
    ):
        assert unsafe(sql, is_query=True) is None, sql


def test_texts_that_are_no_sql() -> None:
    text = flow(
        "x: {static: {value: \"please select one, using 'this'\"}}",
        'y: {sink: {from: nums, stream: y, alert: {email: a@b.c, subject: "it\'s reflect()"}}}',
    )
    assert refused(text, allow_mail=("a@b.c",)) == []


def test_all_that_is_wrong_is_told_at_once(client: TestClient, place: Place) -> None:
    text = flow(*[line.replace("x:", f"x{n}:") for n, line in enumerate(CODE.values())])
    told = client.post("/api/flows", json={"text": text}, headers=AUTH).json()
    assert {each["node"] for each in told["violations"]} == {f"x{n}" for n in range(len(CODE))}
    assert all(each["line"] for each in told["violations"]), "each with its line"
    assert not (place.path / "flows" / "sent").exists()


def test_with_code_allowed_it_is_the_host_that_is_missing(place: Place) -> None:
    with support.client(place.service(allow_code=True)) as client:
        text = flow(CODE["function"], "y: {sink: {from: x, stream: y}}")
        told = client.post("/api/flows", json={"text": text}, headers=AUTH)
        assert (told.status_code, told.json()["kind"]) == (409, "RunError"), told.text
        assert client.get("/api/health").json()["allow_code"] is True
