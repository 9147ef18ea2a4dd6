"""Names of datasets: as OpenLineage's own client has them."""

from __future__ import annotations

from pathlib import Path

import pytest
from openlineage.client.naming import dataset as rules

from headwater import streams
from headwater.lineage import naming
from headwater.lineage.naming import Dataset


def same(found: Dataset, rule: rules.DatasetNaming) -> None:
    assert (found.namespace, found.name) == (rule.get_namespace(), rule.get_name())


def test_files_here_and_elsewhere() -> None:
    same(naming.of_files("/data/lr"), rules.LocalFileSystem("/data/lr"))
    same(naming.of_files("file:///data/lr"), rules.LocalFileSystem("/data/lr"))
    same(naming.of_files("/data/lr/"), rules.LocalFileSystem("/data/lr"))
    same(naming.of_files("file://node/data/lr"), rules.RemoteFileSystem("node", "/data/lr"))
    same(naming.of_files("hdfs://node:8020/a/b"), rules.HDFS("node", "8020", "/a/b"))
    for scheme in ("s3", "s3a", "s3n"):
        same(naming.of_files(f"{scheme}://lake/a/b/"), rules.S3("lake", "a/b"))
    same(naming.of_files("gs://lake/a/b"), rules.GCS("lake", "a/b"))
    there = "abfss://box@service.dfs.core.windows.net/a"
    same(naming.of_files(there), rules.ABFSS("box", "service", "/a"))


def test_a_relative_path_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    same(naming.of_files("data"), rules.LocalFileSystem(str(tmp_path / "data")))


def test_a_password_is_not_told() -> None:
    assert naming.of_files("ftp://me:secret@node/a").namespace == "ftp://me@node"


@pytest.mark.parametrize(
    ("options", "topics"),
    [
        ({"subscribe": "a, b"}, ["a", "b"]),
        ({"subscribePattern": "re.*"}, ["re.*"]),
        ({"assign": '{"a": [0, 1]}'}, ["a"]),
    ],
)
def test_topics_of_kafka(options: dict[str, str], topics: list[str]) -> None:
    more = {"kafka.bootstrap.servers": "one:9093,two:9093", **options}
    found = naming.of_source("/prov", "f", "s", {"format": "kafka", "options": more})
    assert [one.name for one in found] == topics
    same(found[0], rules.Kafka("one", "9093", topics[0]))


def test_a_broker_without_a_port() -> None:
    assert naming.of_topic("one", "t") == Dataset("kafka://one:9092", "t")
    assert naming.of_topic("", "t") == Dataset("kafka://localhost:9092", "t")
    assert naming.of_topic("[::1]:9092", "t") == Dataset("kafka://[::1]:9092", "t")


def test_what_has_no_name_of_its_own_is_its_stores() -> None:
    own = Dataset("headwater:///prov", "f/s")
    assert naming.of_source("/prov", "f", "s", {}) == (own,)
    assert naming.of_source("/prov", "f", "s", {"format": "kafka", "options": {}}) == (own,)
    assert naming.of_sink("/prov", "f", "s", {}) == (own,)


def test_a_sink_is_also_where_it_is_handed_on_to() -> None:
    servers = {"kafka.bootstrap.servers": "one:1"}
    (_, topic) = naming.of_sink("/prov", "f", "s", {"format": "kafka", "topic": "t", **servers})
    assert topic == Dataset("kafka://one:1", "t")
    (_, files) = naming.of_sink("/prov", "f", "s", {"format": "parquet", "path": "/out"})
    assert files == Dataset("file", "/out")


def test_named_streams(tmp_path: Path) -> None:
    registry = streams.open(tmp_path / "streams")
    registry.create("scans", "id bigint, ts timestamp")
    found = naming.of_stream(registry, "scans")
    assert found == Dataset(f"headwater://{tmp_path}/streams", "scans")


def test_a_stream_on_kafka_is_its_topic(tmp_path: Path) -> None:
    from dataclasses import replace

    registry = streams.open(tmp_path)
    registry.create("scans", "id bigint, ts timestamp")
    declared = replace(
        registry.declaration("scans"), log="kafka:radar", options={"bootstrap": "one:9093"}
    )
    registry.declaration = lambda _: declared  # type: ignore[method-assign]
    assert naming.of_stream(registry, "scans") == Dataset("kafka://one:9093", "radar")
