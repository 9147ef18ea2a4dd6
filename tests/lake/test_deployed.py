"""Flow files whose store is a lake: named streams, jobs, hot changes, the service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater.compose.kinds import Filter
from headwater.deploy import Host
from headwater.server.service import Service
from headwater.server.settings import Settings
from headwater.store.lake.prepared import Notes
from tests.deploy.support import came_from, host_of, ids, parse, publish, rows, settle
from tests.lake.test_lake import SCHEMA, write
from tests.server.api import support

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

FLOW = """
some: {filter: {from: nums, where: n % 2 = 0}}
slid: {aggregate: {from: some, window: {time: 8 seconds}, columns: {c: count(*), first: min(n)}}}
slids: {sink: {from: slid, stream: slids}}
few: {filter: {from: nums, where: n % 10 = 0}}
worked: {job: {from: few, call: "tests.deploy.functions:batch_work", schema: total bigint, per: {count: 2}}}
worked_out: {sink: {from: worked, stream: worked}}
"""  # noqa: E501


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("deployed")


@pytest.fixture(scope="module")
def host(home: Path, spark: SparkSession) -> Iterator[Host]:
    """A host whose flow was changed and which was started again."""
    flow = parse("part", FLOW)
    with host_of(home, spark, live=True, on_lake=True) as first:
        first.deploy(flow)
        publish(first, 0, 21)
        settle(first)
        node = flow["some"]
        assert isinstance(node, Filter)
        first.deploy(flow.replace("some", replace(node, where="n % 2 = 0 and n >= 0")))
        publish(first, 21, 30)
        settle(first)
    with host_of(home, spark, live=True, on_lake=True) as second:
        publish(second, 30, 41)
        settle(second)
        yield second


def test_results_of_every_part_and_version_come_from_events(host: Host) -> None:
    (deployment,) = host.deployments.values()
    changed = next(one for one in ids(deployment) if one.endswith("@2"))
    with hw.open(host.store) as store:
        graph = store.graph(flow=f"part.{changed.replace('@', '.v')}")
        assert {*graph.edges["source_id"].to_pylist()} <= {*graph.vertices["id"].to_pylist()}
        assert graph.edges.num_rows
        found = {row["first"]: row for row in rows(host, "slids")}
        assert sorted(found) == [0, 8, 16, 24, 32][: len(found)]
        assert len(found) >= 4
        assert len(rows(host, "slids")) == len(found), "none twice"
        for first, row in found.items():
            held = set(range(first, first + 8, 2))
            assert row["c"] == len(held)
            assert came_from(store, "slids", row) == held
        worked = {row["total"]: came_from(store, "worked", row) for row in rows(host, "worked")}
        assert worked == {10: {0, 10}, 50: {20, 30}}


def test_the_service_answers(host: Host) -> None:
    service = Service(
        Settings(token=support.TOKEN),
        streams=host.streams,
        flows=host.folder,
        store=host.store,
        host=host,
    )
    with support.client(service, headers=support.AUTH) as client:
        assert client.get("/api/health").json()["flows"]["running"] == 1
        told = client.get("/api/store").json()
        (sink,) = [one for one in told["sinks"] if one["name"] == "slids" and one["latest"]]
        page = client.get("/api/results", params={"sink": sink["qualified"]}).json()
        row = page["rows"][0]
        asked = {"sink": sink["qualified"], "result_id": row["result_id"]}
        behind = client.get("/api/backward", params=asked).json()["rows"]
        assert len(behind) == row["c"]
        told = [
            {"type": "used", "activity": "x1", "entity": "photo", "execution": "x1"},
            {"type": "wasGeneratedBy", "entity": "tags", "activity": "x1", "execution": "x1"},
        ]
        lines = "".join(json.dumps(one) + "\n" for one in told)
        assert client.post("/api/jobs/photos/elements", content=lines).status_code == 200
        assert client.post("/api/jobs/photos/finish").json()["finished"] is True
        (job,) = client.get("/api/jobs").json()["rows"]
        assert (job["job"], job["state"], job["dependencies"]) == ("photos", "finished", 1)
        found = client.get("/api/backward", params={"entity": "tags"}).json()["rows"]
        assert [one["id"] for one in found] == ["photo"]


class Given:
    """A writer of tables that keeps what it was given."""

    def __init__(self) -> None:
        self.batches: dict[tuple[str, int], pa.Table] = {}
        self.calls = 0

    def take(self, query_id: str, batch: int, ids: pa.Array, rows: pa.Table) -> None:
        self.calls += 1
        assert rows.column_names == ["__hw_id", "__hw_time", "id", "v", "tags"]
        told = rows.set_column(0, "__hw_id", ids).sort_by("__hw_id")
        assert self.batches.setdefault((query_id, batch), told).equals(told), "the same again"


def test_a_batch_that_is_run_again_gives_the_same_results(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "data", 0, range(20))
    given = Given()
    address = f"delta:{tmp_path / 'lake'}"

    def run() -> None:
        flow = hw.Flow("given", spark)
        source = flow.source(
            "reports",
            format="parquet",
            path=str(tmp_path / "data"),
            schema=SCHEMA,
            event_time="ts",
            watermark="0 seconds",
            id="id",
        )
        flow.sink("rows", source.select("id", "v", "tags"), write=given)
        flow.start(store=address, capture="eager", available_now=True).wait()

    with monkeypatch.context() as patched:
        patched.setattr(Notes, "write", _full)
        with pytest.raises(hw.RunError, match="no space left"):
            run()
    assert given.calls == 1
    run()
    assert given.calls == 2
    with hw.open(address) as store:
        (told,) = given.batches.values()
        assert told["__hw_id"].to_pylist() == sorted(store.results("rows")["result_id"].to_pylist())


def _full(*_: object) -> None:
    raise OSError("no space left")
