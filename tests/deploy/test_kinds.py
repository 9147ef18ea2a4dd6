"""Every kind of node deployed: its results and their provenance, against plain Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headwater as hw
from headwater.errors import FlowError
from tests.deploy.support import BEGIN, came_from, event, host_of, parse, publish, rows, settle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import SparkSession

COUNT = 24
EVENTS = [event(n) for n in range(COUNT)]
Found = dict[tuple[Any, ...], set[int]]


def found(host: hw.Store, store: Any, stream: str, columns: Iterable[str]) -> Found:
    """Each result by its values, with the events that it came from; none twice."""
    told = [(tuple(row[c] for c in columns), row) for row in rows(host, stream)]  # type: ignore[arg-type]
    assert len({key for key, _ in told}) == len(told), [key for key, _ in told]
    return {key: came_from(store, stream, row) for key, row in told}


def expected(pairs: Iterable[tuple[tuple[Any, ...], Iterable[int]]]) -> Found:
    return {key: set(numbers) for key, numbers in pairs}


def windows(size: int, slide: int, by: Callable[[dict[str, Any]], Any] | None = None) -> Found:
    """Windows of seconds that the last event closes, with their sums."""
    held: dict[tuple[Any, int], list[int]] = {}
    for each in EVENTS:
        first = (each["n"] - size) // slide * slide + slide
        for start in range(first, each["n"] + 1, slide):
            held.setdefault((by(each) if by else None, start), []).append(each["n"])
    closed = {k: v for k, v in held.items() if k[1] + size <= COUNT - 1}
    return expected(
        ((*((key,) if by else ()), sum(EVENTS[n]["v"] for n in numbers), start), numbers)
        for (key, start), numbers in closed.items()
    )


def started(store: Any, host: Any, stream: str, columns: list[str]) -> Found:
    told: Found = {}
    for row in rows(host, stream):
        start = round((row["window"]["start"] - BEGIN).total_seconds())
        key = (*(row[c] for c in columns), start)
        assert key not in told
        told[key] = came_from(store, stream, row)
    return told


def test_operators(tmp_path: Path, spark: SparkSession) -> None:
    flow = parse(
        "ops",
        """
        even: {filter: {from: nums, where: n % 2 = 0}}
        odd: {filter: {from: nums, where: n % 2 = 1}}
        both: {merge: {from: [even, odd]}}
        mapped: {map: {from: both, columns: {w: v + 1, late: n > 10}, keep: [n, at]}}
        mapped_out: {sink: {from: mapped, stream: mapped}}
        slid: {aggregate: {from: nums, window: {time: 6 seconds, slide: 3 seconds}, by: [k], columns: {s: sum(v)}}}
        slid_out: {sink: {from: slid, stream: slid}}
        again: {aggregate: {from: slid, window: {time: 12 seconds}, columns: {s: sum(s), c: count(*)}}}
        again_out: {sink: {from: again, stream: again}}
        names: {static: {value: [{k: a, name: even}]}}
        named: {join: {from: [odd, names], on: [k], how: left_outer}}
        known: {sql: {from: [both, names], query: "select n, at, name from both join names using (k) where n > 3"}}
        named_out: {sink: {from: named, stream: named}}
        known_out: {sink: {from: known, stream: known}}
        near: {join: {from: {a: even, b: odd}, policy: window, within: 1 second}}
        near_out: {sink: {from: near, stream: near}}
        ended: {map: {from: slid, columns: {window: window_time(window)}, keep: [k, s]}}
        beside: {join: {from: {w: ended, x: odd}, policy: window, on: [k], within: 3 seconds}}
        beside_out: {sink: {from: beside, stream: beside}}
        """,
    )
    with host_of(tmp_path, spark) as host:
        deployment = host.deploy(flow)
        assert len(deployment.units) == 1, "operators are one query"
        publish(host, 0, COUNT)
        settle(host)
        with hw.open(host.store) as store:
            assert found(host, store, "mapped", ["n", "w", "late"]) == expected(
                ((e["n"], e["v"] + 1, e["n"] > 10), [e["n"]]) for e in EVENTS
            )
            assert started(store, host, "slid", ["k", "s"]) == windows(6, 3, lambda e: e["k"])
            assert found(host, store, "named", ["n", "name"]) == expected(
                ((e["n"], None), [e["n"]]) for e in EVENTS if e["n"] % 2
            )
            assert found(host, store, "known", ["n", "name"]) == expected(
                ((e["n"], "even"), [e["n"]]) for e in EVENTS if e["n"] > 3 and e["k"] == "a"
            )
            assert found(host, store, "near", ["n", "b_n"]) == expected(
                ((a, b), [a, b])
                for a in range(0, COUNT, 2)
                for b in range(1, COUNT, 2)
                if abs(a - b) <= 1
            )
            # A window's time is its last microsecond.
            assert found(host, store, "beside", ["s", "n"]) == expected(
                ((key[1], n), [*numbers, n])
                for key, numbers in windows(6, 3, lambda e: e["k"]).items()
                for n in range(1, COUNT, 2)
                if key[0] == event(n)["k"] and abs(key[2] + 6 - 1e-6 - n) <= 3
            )
            for row in rows(host, "again"):
                start = round((row["window"]["start"] - BEGIN).total_seconds())
                inner = {
                    key: numbers
                    for key, numbers in windows(6, 3, lambda e: e["k"]).items()
                    if start <= key[2] + 6 - 1 < start + 12
                }
                assert (row["s"], row["c"]) == (sum(key[1] for key in inner), len(inner))
                assert came_from(store, "again", row) == set().union(*inner.values())
            assert rows(host, "again")


def test_steps_in_order_of_arrival(tmp_path: Path, spark: SparkSession) -> None:
    flow = parse(
        "ordered",
        """
        three: {aggregate: {from: nums, window: {count: 3}, by: [k], columns: {s: sum(v)}}}
        three_out: {sink: {from: three, stream: three}}
        even: {filter: {from: nums, where: n % 4 = 0}}
        rest: {map: {from: nums, columns: {m: n}, keep: [at]}}
        latest: {join: {from: [rest, even], policy: latest}}
        latest_out: {sink: {from: latest, stream: latest}}
        rising: {match: {from: nums, pattern: "A B", define: {B: "v > A.v"}, measures: {first: A.n, second: B.n}}}
        rising_out: {sink: {from: rising, stream: rising}}
        """,
    )
    with host_of(tmp_path, spark) as host:
        host.deploy(flow)
        publish(host, 0, COUNT)
        settle(host)
        with hw.open(host.store) as store:
            keyed = {k: [e["n"] for e in EVENTS if e["k"] == k] for k in "ab"}
            assert found(host, store, "three", ["k", "s"]) == expected(
                ((k, sum(EVENTS[n]["v"] for n in held[i : i + 3])), held[i : i + 3])
                for k, held in keyed.items()
                for i in range(0, len(held), 3)
            )
            # An event on both sides meets itself as a clock first: the one before is the latest.
            latest = {n: (n - 1) // 4 * 4 for n in range(1, COUNT)}
            assert found(host, store, "latest", ["m", "n"]) == expected(
                (pair, pair) for pair in latest.items()
            )
            matches, at = [], 0
            while at + 1 < COUNT:
                if EVENTS[at + 1]["v"] > EVENTS[at]["v"]:
                    matches.append((at, at + 1))
                    at += 1
                at += 1
            assert found(host, store, "rising", ["first", "second"]) == expected(
                (pair, pair) for pair in matches
            )


def test_functions_services_and_jobs(tmp_path: Path, spark: SparkSession, on_lake: bool) -> None:
    here = "tests.deploy.functions"
    flow = parse(
        "work",
        f"""
        table: {{static: {{call: "{here}:load", static: {{size: 4}}}}}}
        by: {{static: {{value: 100}}}}
        added: {{function: {{from: {{e: nums, by: by, table: table}}, call: "{here}:add", schema: sum bigint, keep: [n, at, v], batches: arrow}}}}
        more: {{function: {{from: added, call: "{here}:add_pandas", static: {{by: 5}}, schema: sum bigint, keep: [n, at]}}}}
        more_out: {{sink: {{from: more, stream: more}}}}
        copies: {{function: {{from: nums, call: "{here}:repeat", schema: copy int, keep: [n, at], many: true}}}}
        copies_out: {{sink: {{from: copies, stream: copies}}}}
        squares: {{service: {{from: nums, target: "{here}:square", request: [n], response: square bigint, retries: 0}}}}
        squares_out: {{sink: {{from: squares, stream: squares}}}}
        refused: {{sink: {{from: squares.failures, stream: refused}}}}
        few: {{filter: {{from: added, where: n % 6 = 0}}}}
        worked: {{job: {{from: {{event: few, table: table}}, call: "{here}:work", schema: "n bigint, made bigint", slots: 2, retries: 0}}}}
        worked_out: {{sink: {{from: worked, stream: worked}}}}
        lost: {{sink: {{from: worked.failures, stream: lost}}}}
        pairs: {{job: {{from: few, call: "{here}:batch_work", schema: total bigint, per: {{count: 2}}}}}}
        pairs_out: {{sink: {{from: pairs, stream: pairs}}}}
        queued: {{function: {{from: few, call: "{here}:add_pandas", static: {{by: 7}}, schema: sum bigint, keep: [n, at], runtime: jobs}}}}
        queued_out: {{sink: {{from: queued, stream: queued}}}}
        """,
    )
    with host_of(tmp_path, spark, on_lake=on_lake) as host:
        host.deploy(flow)
        publish(host, 0, COUNT, at_once=8)
        settle(host)
        with hw.open(host.store) as store:
            assert found(host, store, "more", ["n", "sum"]) == expected(
                ((e["n"], e["v"] + 5), [e["n"]]) for e in EVENTS
            )
            assert found(host, store, "copies", ["n", "copy"]) == expected(
                ((n, copy), [n]) for n in range(COUNT) for copy in range(n % 3)
            )
            assert found(host, store, "squares", ["n", "square"]) == expected(
                ((n, n * n), [n]) for n in range(COUNT) if n % 5 != 4
            )
            assert found(host, store, "refused", ["n"]) == expected(
                ((n,), [n]) for n in range(4, COUNT, 5)
            )
            assert all("not this one" in row["reason"] for row in rows(host, "refused"))
            assert found(host, store, "worked", ["n", "made"]) == expected(
                ((n, EVENTS[n]["v"] + 4), [n]) for n in (0, 6, 18)
            )
            assert found(host, store, "lost", ["n"]) == {(12,): {12}}
            assert "twelve" in rows(host, "lost")[0]["reason"]
            assert found(host, store, "queued", ["n", "sum"]) == expected(
                ((n, EVENTS[n]["v"] + 7), [n]) for n in (0, 6, 12, 18)
            )
            assert {row["at"] for row in rows(host, "queued")} == {
                EVENTS[n]["at"] for n in (0, 6, 12, 18)
            }
            assert found(host, store, "pairs", ["total"]) == {(6,): {0, 6}, (30,): {12, 18}}
            # From an event on, through whatever there is.
            ends = store.forward(entity="hw:streams/nums/18")["id"].to_pylist()
            assert {name.split("/")[1] for name in ends} == {
                *("more", "squares", "worked", "pairs", "queued")
            }


def test_windows_are_no_moments_to_join_by(tmp_path: Path, spark: SparkSession) -> None:
    flow = parse(
        "near",
        """
        slid: {aggregate: {from: nums, window: {time: 6 seconds}, by: [k], columns: {s: sum(v)}}}
        near: {join: {from: [slid, nums], policy: window, on: [k], within: 1 second}}
        out: {sink: {from: near, stream: near}}
        """,
    )
    with (
        host_of(tmp_path, spark) as host,
        pytest.raises(FlowError, match="port 'slid' has windows for times.* window_time"),
    ):
        host.deploy(flow)
