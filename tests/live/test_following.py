"""Following the graph, standing queries, what must still be kept: in a process of one's own."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import headwater as hw
from headwater.errors import HeadwaterError, PredicateError, RunError
from tests.live.test_graph import READINGS, seconds, sums
from tests.support.streams import Lab, write

pytestmark = pytest.mark.spark


def test_changes_come_as_batches_are_committed(flow: hw.Flow, lab: Lab) -> None:
    flow.sink("sums", sums(lab.source(flow, "a", READINGS)))
    path = str(lab.home / "store")
    with flow.start(store=path, capture="eager", live=True) as run:
        seen = []
        for change in hw.open(path).follow(timeout=60):
            seen.append(change)
            if change.batch == 4:
                break
        assert [c.batch for c in seen] == [0, 1, 2, 3, 4]
        assert run.active
        # A record and its window come while it is followed; the position tells what is new.
        write(lab.home / "a", "id bigint, ts timestamp, k int, v int", "6 | 90 | 1 | 5")
        later = next(c for c in hw.open(path).follow(after=seen[-1].position, timeout=60))
        assert later.batch == 5
    left = list(hw.open(path).follow(after=seen[-1].position, wait=False))
    assert left[0].position == later.position


def test_following_ends_when_the_flow_is_finished(flow: hw.Flow, lab: Lab) -> None:
    flow.sink("rows", lab.source(flow, "a", READINGS).select("id"))
    path = str(lab.home / "store")
    run = flow.start(store=path, capture="eager", live=True, available_now=True)
    run.wait()
    followed: list[int] = []
    follower = threading.Thread(
        target=lambda: followed.extend(c.batch for c in hw.open(path).follow())
    )
    follower.start()
    run.finish()
    follower.join(timeout=60)
    assert not follower.is_alive()
    assert followed == [0, 1, 2, 3, 4]


def test_a_standing_query_gives_each_match_with_its_records(flow: hw.Flow, lab: Lab) -> None:
    flow.sink("sums", sums(lab.source(flow, "a", READINGS)))
    store = lab.run(flow, "eager")
    found = list(store.watch("sums", where="s >= 30", after=0, wait=False))
    assert [(m.result["s"], sorted(m.records["id"].to_pylist())) for m in found] == [
        (30, [1, 2]),
        (30, [1, 2]),
        (30, [3]),
        (30, [3]),
        (40, [4]),
        (40, [4]),
    ]
    rest = list(store.watch("sums", where="s >= 30", after=found[1].position, wait=False))
    assert [m.result_id for m in rest] == [m.result_id for m in found[2:]]
    # Without a position only what is still to come.
    assert list(store.watch("sums", wait=False)) == []
    with pytest.raises(PredicateError, match="where='s >' is not an SQL predicate"):
        store.watch("sums", where="s >")
    with pytest.raises(PredicateError, match="can't be evaluated"):
        store.watch("sums", where="nothing > 1")


class Hook(BaseHTTPRequestHandler):
    """Takes notices; the first attempt of each is turned away."""

    seen: list[dict[str, Any]]
    turned_away: set[int]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        again = body["result"]["result_id"] in self.turned_away
        self.turned_away.add(body["result"]["result_id"])
        self.send_response(200 if again else 503)
        self.end_headers()
        if again:
            self.seen.append(body)

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal."""


@pytest.fixture
def hook() -> Iterator[ThreadingHTTPServer]:
    Hook.seen, Hook.turned_away = [], set()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_matches_go_to_a_webhook_or_a_stream(
    flow: hw.Flow, lab: Lab, hook: ThreadingHTTPServer
) -> None:
    flow.sink("sums", sums(lab.source(flow, "a", READINGS)))
    store = lab.run(flow, "eager")
    url = f"http://127.0.0.1:{hook.server_port}/alerts"
    found = list(store.watch("sums", where="s = 40", after=0, to=url, wait=False))
    assert len(found) == 2
    assert [body["result"]["result_id"] for body in Hook.seen] == [m.result_id for m in found]
    assert [r["id"] for r in Hook.seen[0]["records"]] == [4]
    stream = lab.home / "alerts"
    list(store.watch("sums", where="s = 40", after=0, to=str(stream), wait=False))
    list(store.watch("sums", where="s = 40", after=0, to=str(stream), wait=False))
    files = sorted(stream.glob("*.parquet"))
    assert len(files) == 2, "a match that is handed on again replaces itself"
    row = pq.read_table(files[0]).to_pylist()[0]
    assert json.loads(row["result"])["s"] == 40
    assert json.loads(row["records"])["records"][0]["id"] == 4


def test_a_webhook_that_is_not_there(
    flow: hw.Flow, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    flow.sink("rows", lab.source(flow, "a", "1 | 1 | 1 | 10").select("id"))
    store = lab.run(flow, "eager")
    with pytest.raises(HeadwaterError, match=r"did not take result -?\d+ in 5 attempts .*after=0"):
        list(store.watch("rows", after=0, to="http://127.0.0.1:9/x", wait=False))


def test_from_where_a_source_must_still_be_kept(flow: hw.Flow, lab: Lab) -> None:
    flow.sink("sums", sums(lab.source(flow, "a", READINGS)))
    path = str(lab.home / "store")
    run = flow.start(store=path, capture="eager", live=True, available_now=True)
    run.wait()
    store = hw.open(path)
    # At watermark 60 what is at 55 or later is in a window that is open.
    row = store.safe_offset("a").to_pylist()[0]
    assert (seconds(row["event_time"]), row["batch"]) == (55, 3)
    assert Path(row["path"]).name == "0003.parquet"
    run.finish()
    assert store.safe_offset("a").num_rows == 0


def test_records_are_kept_while_they_are_alive(flow: hw.Flow, lab: Lab) -> None:
    records = lab.source(flow, "a", READINGS, keep="alive")
    flow.sink("large", sums(records).filter("s > 30"))
    store = lab.run(flow, "eager", live=True)
    kept = store._reader.query("SELECT __hw_id AS id FROM record_1 ORDER BY 1")["id"].to_pylist()
    # 4 reached a result, 5 still may; 1, 2 and 3 are past and reached none.
    assert kept == [4, 5]
    sessions = records.groupBy("k", F.session_window("ts", "5 seconds")).count()
    flow.sink("sessions", sessions)
    with pytest.raises(RunError, match="keep='alive' drops records once they expire, and none"):
        lab.run(flow, "eager")
