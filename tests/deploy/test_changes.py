"""Hot changes: what goes on, what is cut, what begins where, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headwater as hw
from headwater.compose import Composition
from headwater.compose.kinds import Aggregate, Filter, Function, Map, Sink, Source
from headwater.errors import FlowError, RunError
from tests.deploy.support import (
    BEGIN,
    came_from,
    event,
    eventually,
    host_of,
    ids,
    parse,
    publish,
    rows,
    settle,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = "tests.deploy.functions"
FLOW = f"""
all: {{filter: {{from: nums, where: n >= 0}}}}
added: {{function: {{from: all, call: "{HERE}:add_pandas", static: {{by: 1}}, schema: sum bigint, keep: [n, at]}}}}
out: {{sink: {{from: added, stream: out}}}}
"""


def numbers(host: Any, stream: str = "out") -> list[int]:
    return [row["n"] for row in rows(host, stream)]


def test_only_what_a_change_touches_is_replaced(
    tmp_path: Path, spark: SparkSession, on_lake: bool
) -> None:
    flow = parse("part", FLOW)
    with host_of(tmp_path, spark, on_lake=on_lake) as host:
        deployment = host.deploy(flow)
        publish(host, 0, 10)
        settle(host)
        assert ids(deployment) == ["all@1", "added@1"]
        early = hw.open(host.store)
        node = flow["added"]
        assert isinstance(node, Function)
        host.deploy(flow.replace("added", replace(node, static={"by": 100})))
        assert ids(deployment) == ["all@1", "added@2"]
        publish(host, 10, 20)
        settle(host)
        made = {row["n"]: row["sum"] - event(row["n"])["v"] for row in rows(host, "out")}
        assert made == {n: 1 if n < 10 else 100 for n in range(20)}
        assert sorted(numbers(host)) == list(range(20))
        deployment.undo()
        publish(host, 20, 30)
        settle(host)
        made = {row["n"]: row["sum"] - event(row["n"])["v"] for row in rows(host, "out")}
        assert [made[n] for n in range(20, 30)] == [1] * 10
        assert sorted(numbers(host)) == list(range(30))
        with early as store:
            # Which version made a result is told with it, also by a store opened before it.
            by_version = {
                n: store.backward(entity=f"hw:streams/out/{row['event_id']}", steps=True)
                for n, row in ((row["n"], row) for row in rows(host, "out"))
            }
            jobs = {n: set(table["job"].to_pylist()) for n, table in by_version.items()}
            assert jobs[5] == {"part.all.v1", "part.added.v1"}
            assert jobs[15] == {"part.all.v1", "part.added.v2"}
            assert jobs[25] == {"part.all.v1", "part.added.v3"}


def test_what_is_added_removed_and_undone(tmp_path: Path, spark: SparkSession) -> None:
    flow = parse("more", FLOW)
    with host_of(tmp_path, spark) as host:
        deployment = host.deploy(flow)
        publish(host, 0, 8)
        settle(host)
        added = flow.add("even", Filter(inputs="added", where="n % 2 = 0")).add(
            "evens", Sink(inputs="even", stream="evens")
        )
        host.deploy(added)
        assert ids(deployment)[0] == "all@1"
        publish(host, 8, 16)
        settle(host)
        assert sorted(numbers(host, "evens")) == [8, 10, 12, 14], "from now on"
        host.deploy(flow)
        publish(host, 16, 24)
        settle(host)
        deployment.undo()
        publish(host, 24, 32)
        settle(host)
        # What came while it was gone has its results, too: undone, it never was.
        assert sorted(numbers(host, "evens")) == list(range(8, 32, 2))
        assert sorted(numbers(host)) == list(range(32))
        assert [deployment.files.change(v).action for v in deployment.files.versions()] == [
            "deploy",
            "change",
            "change",
            "undo",
        ]
        deployment.undo()
        with pytest.raises(RunError, match="nothing to undo"):
            deployment.undo()
        assert deployment.composition == flow


def test_windows_of_counts_and_of_times_go_on(
    tmp_path: Path, spark: SparkSession, on_lake: bool
) -> None:
    flow = parse(
        "state",
        """
        five: {aggregate: {from: nums, window: {count: 5}, columns: {s: sum(v), first: min(n)}}}
        fives: {sink: {from: five, stream: fives}}
        slid: {aggregate: {from: nums, window: {time: 12 seconds, slide: 4 seconds}, columns: {s: sum(v)}}}
        slids: {sink: {from: slid, stream: slids}}
        """,
        watermark="2 seconds",
    )
    with host_of(tmp_path, spark, on_lake=on_lake) as host:
        deployment = host.deploy(flow)
        end = 0
        for turn, size in enumerate((7, 11, 1, 16), 1):
            publish(host, end, end + size, at_once=3)
            end += size
            five, slid = flow["five"], flow["slid"]
            assert isinstance(five, Aggregate)
            assert isinstance(slid, Aggregate)
            columns = {"s": f"sum(v + {turn} - {turn})"}
            flow = flow.replace("slid", replace(slid, columns=columns))
            host.deploy(flow)
        publish(host, end, end + 9)
        end += 9
        settle(host)
        assert len(ids(deployment)) == 1
        with hw.open(host.store) as store:
            fives = {row["first"]: row for row in rows(host, "fives")}
            assert sorted(row["first"] for row in rows(host, "fives")) == list(
                range(0, end - end % 5, 5)
            )
            for first, row in fives.items():
                assert came_from(store, "fives", row) == set(range(first, first + 5))
            starts = []
            for row in rows(host, "slids"):
                start = round((row["window"]["start"] - BEGIN).total_seconds())
                starts.append(start)
                held = [n for n in range(start, start + 12) if 0 <= n < end]
                assert row["s"] == sum(event(n)["v"] for n in held)
                assert came_from(store, "slids", row) == set(held)
            closed = [s for s in range(-8, end, 4) if s + 12 <= end - 1 - 2]
            assert sorted(starts) == closed


def test_a_silent_source_does_not_cost_windows(tmp_path: Path, spark: SparkSession) -> None:
    """After a restart Spark forgets how far each source was, and one is silent from then on."""
    text = """
        others: {source: {stream: others, schema: "n bigint, at timestamp, k string, v bigint", event_time: at, id: n, watermark: 0 seconds}}
        both: {merge: {from: [nums, others]}}
        tens: {aggregate: {from: both, window: {time: 10 seconds}, columns: {c: count(*)}}}
        out: {sink: {from: tens, stream: out}}
        """
    flow = parse("silent", text)
    with host_of(tmp_path, spark) as host:
        host.deploy(flow)
        publish(host, 0, 10)
        publish(host, 0, 50, "others")
        settle(host)
    with host_of(tmp_path, spark) as host:
        publish(host, 10, 40)
        settle(host)
        tens = flow["tens"]
        assert isinstance(tens, Aggregate)
        host.deploy(flow.replace("tens", replace(tens, columns={"c": "count(n)"})))
        publish(host, 40, 61)
        publish(host, 50, 61, "others")
        settle(host)
        starts = [
            round((row["window"]["start"] - BEGIN).total_seconds()) for row in rows(host, "out")
        ]
        assert sorted(starts) == [0, 10, 20, 30, 40, 50]
        assert {row["c"] for row in rows(host, "out")} == {20}


def test_a_wrong_change_changes_nothing(tmp_path: Path, spark: SparkSession) -> None:
    flow = parse("wrong", FLOW)
    with host_of(tmp_path, spark) as host:
        deployment = host.deploy(flow)
        before = ids(deployment), deployment.version
        wrong = flow.replace("all", Filter(inputs="nums", where="nonsense > 1"))
        with pytest.raises(FlowError, match="node 'all' of flow 'wrong'.*nonsense"):
            host.deploy(wrong)
        node = flow["added"]
        assert isinstance(node, Function)
        with pytest.raises(FlowError, match="node 'added'.*no_such"):
            host.deploy(flow.replace("added", replace(node, call=f"{HERE}:no_such")))
        with pytest.raises(FlowError, match="node 'added'.*bye"):
            host.deploy(flow.replace("added", replace(node, static={"bye": 1})))
        other = flow.add("less", Map(inputs="all", columns={"m": "n"})).replace(
            "out", Sink(inputs="less", stream="out")
        )
        with pytest.raises(
            FlowError, match=r"stream 'out' has the columns .*publish under another"
        ):
            host.deploy(other)
        host.streams.create("theirs", "n bigint")
        with pytest.raises(FlowError, match=r"stream 'theirs' is of person .*append: true"):
            host.deploy(flow.replace("out", Sink(inputs="added", stream="theirs")))
        assert (ids(deployment), deployment.version) == before
        publish(host, 0, 5)
        settle(host)
        assert sorted(numbers(host)) == list(range(5))


def test_columns_of_inner_streams_may_change(tmp_path: Path, spark: SparkSession) -> None:
    flow = parse(
        "inner",
        f"""
        less: {{map: {{from: nums, columns: {{m: v}}, keep: [n, at, v]}}}}
        added: {{function: {{from: less, call: "{HERE}:add_pandas", schema: sum bigint, keep: [n, at]}}}}
        out: {{sink: {{from: added, stream: out}}}}
        """,
    )
    with host_of(tmp_path, spark) as host:
        deployment = host.deploy(flow)
        publish(host, 0, 9)
        host.deploy(
            flow.replace("less", Map(inputs="nums", columns={"other": "k"}, keep=["n", "at", "v"]))
        )
        publish(host, 9, 20)
        settle(host)
        assert ids(deployment) == ["less@2", "added@2"]
        assert {"inner.less", "inner.less.v2"} <= set(host.streams.names())
        assert sorted(numbers(host)) == list(range(20))


def test_a_function_that_raises_is_mended_while_the_rest_goes_on(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.deploy.units.query._PATIENCE", (0.1,))
    flow = parse(
        "raises",
        f"""
        all: {{filter: {{from: nums, where: n >= 0}}}}
        copied: {{sink: {{from: all, stream: copied}}}}
        bad: {{function: {{from: all, call: "{HERE}:broken_at_ten", schema: sum bigint, keep: [n, at], batches: arrow}}}}
        out: {{sink: {{from: bad, stream: out}}}}
        """,
    )
    with host_of(tmp_path, spark) as host:
        deployment = host.deploy(flow)
        publish(host, 0, 6)
        settle(host)
        publish(host, 6, 20)
        assert host.drain(60)
        bad = next(unit for unit in deployment.units if unit.record.name == "bad")
        assert bad.state == "failed"
        assert "ten is too much" in str(bad.error)
        assert sorted(numbers(host, "copied")) == list(range(20)), "the rest goes on"
        node = flow["bad"]
        assert isinstance(node, Function)
        host.deploy(flow.replace("bad", replace(node, call=f"{HERE}:mended")))
        settle(host)
        assert sorted(numbers(host)) == list(range(20))


def test_a_stream_that_is_removed_while_it_is_read(tmp_path: Path, spark: SparkSession) -> None:
    flow = parse("gone", FLOW)
    with host_of(tmp_path, spark) as host:
        deployment = host.deploy(flow)
        publish(host, 0, 4)
        settle(host)
        host.streams.remove("nums", force=True)
        first, second = deployment.units
        eventually(lambda: first.state == "failed")
        assert "input 'nums': stream 'nums'" in str(first.error)
        assert "removed" in str(first.error)
        assert second.state == "running"


def test_stop_and_resume(tmp_path: Path, spark: SparkSession) -> None:
    flow = parse("stops", FLOW)
    with host_of(tmp_path, spark) as host:
        deployment = host.deploy(flow)
        publish(host, 0, 5)
        settle(host)
        deployment.stop()
        publish(host, 5, 10)
        assert deployment.units == []
    with host_of(tmp_path, spark) as host:
        deployment = host.deployment("stops")
        assert deployment.units == [], "stopped it stays"
        deployment.resume()
        settle(host)
        assert sorted(numbers(host)) == list(range(10))
        with pytest.raises(RunError, match="run in another process"):
            host_of(tmp_path, spark).start()


def test_a_version_keeps_the_functions_that_it_was_deployed_with(
    tmp_path: Path, spark: SparkSession
) -> None:
    beside = tmp_path / "here"
    beside.mkdir()
    code = "import helping\ndef f(rows):\n    return {'sum': rows['v'] + helping.BY}\n"
    (beside / "mine.py").write_text(code)
    (beside / "helping.py").write_text("BY = 1\n")
    flow = parse(
        "code",
        """
        added: {function: {from: nums, call: "mine:f", schema: sum bigint, keep: [n, at]}}
        out: {sink: {from: added, stream: out}}
        """,
    )

    def made() -> dict[int, int]:
        return {row["n"]: row["sum"] - event(row["n"])["v"] for row in rows(host, "out")}

    with host_of(tmp_path, spark) as host:
        host.deploy(flow, folder=str(beside))
        publish(host, 0, 4)
        settle(host)
        (beside / "helping.py").write_text("BY = 100\n")
        publish(host, 4, 8)
        settle(host)
    with host_of(tmp_path, spark) as host:
        publish(host, 8, 12)
        settle(host)
        assert set(made().values()) == {1}, "not deployed, not changed, by a restart either"
        deployment = host.deploy(flow, folder=str(beside))
        publish(host, 12, 16)
        settle(host)
        deployment.undo()
        publish(host, 16, 20)
        settle(host)
        assert made() == {n: 100 if 12 <= n < 16 else 1 for n in range(20)}


def test_a_source_from_outside_is_copied_once(tmp_path: Path, spark: SparkSession) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()

    def write(first: int, last: int) -> None:
        told = [{**event(n), "at": event(n)["at"].isoformat()} for n in range(first, last)]
        hidden = outside / f".{first}"
        hidden.write_text("\n".join(map(json.dumps, told)))
        hidden.rename(outside / f"{first}.json")

    source = Source(
        format="json",
        path=str(outside),
        schema="n bigint, at timestamp, k string, v bigint",
        event_time="at",
        watermark="0 seconds",
        id="n",
    )
    flow = Composition("copied").source("files", **_given(source))
    flow = flow.add("all", Filter(inputs="files", where="n >= 0"))
    flow = flow.add("out", Sink(inputs="all", stream="out"))
    other = Composition("copied", {"nums": parse("x", "")["nums"]})
    other = other.add("all", Filter(inputs="nums", where="n >= 0"))
    other = other.add("out", Sink(inputs="all", stream="other"))
    with host_of(tmp_path, spark) as host:
        write(0, 5)
        deployment = host.deploy(flow)
        assert ids(deployment) == ["files@1", "all@1"]
        eventually(lambda: len(rows(host, "out")) == 5)
        with hw.open(host.store) as store:
            row = rows(host, "out")[0]
            back = store.backward(entity=f"hw:streams/out/{row['event_id']}")["id"].to_pylist()
            assert back == [f"hw:copied.files.v1/files/{row['n']}"], "to the record in the file"
        host.deploy(other)
        write(5, 9)
        deployment.undo()
        assert ids(deployment)[0] == "files@1", "it goes on with what it had read"
        eventually(lambda: len(rows(host, "out")) == 9)
        settle(host)
        assert sorted(numbers(host)) == list(range(9))
        changed = flow.replace("files", replace(source, options={"mode": "FAILFAST"}))
        with pytest.raises(FlowError, match=r"source 'files' .* another name"):
            host.deploy(changed)


def _given(source: Source) -> dict[str, Any]:
    return {key: value for key, value in source.written().items() if key != "from"}


def test_a_version_that_can_not_be_had_any_more_is_given_up(
    tmp_path: Path, spark: SparkSession
) -> None:
    """The host died just after a version was wanted, and what it needs is gone since."""
    flow = parse("lost", FLOW)
    with host_of(tmp_path, spark) as host:
        deployment = host.deploy(flow)
        other = parse("also", FLOW.replace("stream: out", "stream: also"))
        host.deploy(other)
        node = flow["added"]
        assert isinstance(node, Function)
        wrong = flow.replace("added", replace(node, call=f"{HERE}:no_such"))
        now = deployment.files.change(1)
        units = ["all@1", "added@2"]
        deployment.files.save_version(replace(now, version=2, units=units, parent=1), wrong)
        deployment.files.save_state(target=2)
    with host_of(tmp_path, spark) as host:
        assert "version 2 of flow 'lost' could not be carried through" in str(host.trouble)
        publish(host, 0, 5)
        settle(host)
        assert sorted(numbers(host)) == sorted(numbers(host, "also")) == list(range(5))
        host.deploy(flow.replace("added", replace(node, static={"by": 5})))
        publish(host, 5, 8)
        settle(host)
        assert sorted(numbers(host)) == list(range(8))
