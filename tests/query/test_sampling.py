"""Samples of the live graph: never too much, never wrong, and the newest first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headwater as hw
from headwater import store as stores
from headwater.errors import HeadwaterError, PredicateError, UnknownName
from headwater.query import Store
from headwater.query.sampling import SEEN, Sample
from headwater.store import EmbeddedWriter
from tests.live.made import Adds, Made, fill, live_flow
from tests.store.small import at, batch, flow, reports, stopped


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Made]]:
    path = tmp_path_factory.mktemp("sampling")
    with EmbeddedWriter.open(path) as writer:
        made = fill(writer, seed=7, batches=30)
        with stores.open(path) as store:
            store.mark("reports", where="speed = 3", reason="a broken sensor")
            store.mark("reports", ids=[40, 41], reason="by hand")
            yield store, made


def ids(sample: Sample, *kinds: str) -> set[int]:
    return {row["id"] for row in sample.vertices.to_pylist() if row["kind"] in kinds}


def pairs(sample: Sample) -> set[tuple[int, int]]:
    return {(row["source_id"], row["result_id"]) for row in sample.edges.to_pylist()}


def moments() -> st.SearchStrategy[Any]:
    return st.none() | st.integers(-1, 31).map(lambda second: at(second).isoformat())


@given(limit=st.integers(1, 400), moment=moments())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_sample_is_part_of_the_graph(
    filled: tuple[Store, Made], limit: int, moment: str | None
) -> None:
    store, made = filled
    sample, whole = store.sample(limit=limit, at=moment), store.graph(at=moment)
    assert sample.vertices.schema.equals(SEEN)
    assert sample.vertices.num_rows <= limit
    assert sample.totals.vertices == whole.vertices.num_rows
    assert sample.totals.edges == whole.edges.num_rows
    assert sample.totals.labels == whole.labels.num_rows
    if limit >= sample.totals.vertices:
        assert sample.vertices.num_rows == sample.totals.vertices
    keys = ("kind", "name", "id", "event_time", "delivered", "batch")
    known = {tuple(row[key] for key in keys) for row in whole.vertices.to_pylist()}
    past = {(row["name"], row["id"]) for row in whole.labels.to_pylist()}
    marked = {one for one in made.records if one % 90 == 3} | {40, 41}
    seen = set()
    for row in sample.vertices.to_pylist():
        assert tuple(row[key] for key in keys) in known
        assert row["expired"] == ((row["name"], row["id"]) in past)
        held = {row["id"]} if row["kind"] == "source" else set(made.results[row["id"]][1])
        assert row["marked"] == bool(held & marked)
        assert (row["kind"], row["id"]) not in seen, "twice"
        seen.add((row["kind"], row["id"]))
    edges = {(row["source_id"], row["result_id"]) for row in whole.edges.to_pylist()}
    shown = pairs(sample)
    assert len(shown) == sample.edges.num_rows
    assert shown <= edges
    records, results = ids(sample, "source"), ids(sample, "result")
    assert shown == {(one, result) for one, result in edges if one in records and result in results}


@pytest.mark.parametrize("limit", [1, 2, 5, 13, 40, 100])
def test_the_newest_results_come_first_each_with_all_that_is_behind_it(
    filled: tuple[Store, Made], limit: int
) -> None:
    store, made = filled
    sample = store.sample(limit=limit)
    shown = ids(sample, "result")
    order = sorted(made.results, key=lambda one: (made.results[one][0], one), reverse=True)
    assert shown == set(order[: len(shown)]), "no newer one is left out"
    assert shown
    if len(shown) > 1:
        records = ids(sample, "source")
        assert all(set(made.results[one][1]) <= records for one in shown)


def test_there_are_more_results_rather_than_old_records(filled: tuple[Store, Made]) -> None:
    store, made = filled
    sample = store.sample(limit=60)
    shown = ids(sample, "result")
    behind = {one for result in shown for one in made.results[result][1]}
    left = 60 - len(shown) - len(behind)
    order = sorted(made.results, key=lambda one: (made.results[one][0], one), reverse=True)
    following = order[len(shown)]
    more = set(made.results[following][1]) - behind
    assert len(shown) == 30 or 1 + len(more) > left, "the next one would have fitted"


def test_records_that_are_alive_come_before_others(tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(live_flow())
        writer.commit(batch(0, None, reports((1, 0, 1), (2, 0, 1)), graph=Adds([(1, 0), (2, 0)])))
        writer.commit(batch(1, None, reports((3, 1, 1)), graph=Adds([(3, 1)], labels=[3])))
        writer.commit(batch(2, stopped((9, 2, "a", 1, [3])), graph=Adds()))
        with stores.open(tmp_path) as store:
            assert ids(store.sample(limit=4), "source") == {1, 2, 3}
            assert ids(store.sample(limit=3), "source") == {2, 3}
            # Without the result, the one that is past is the last to be shown.
            assert ids(store.sample(limit=2, until=2), "source") == {1, 2}


def test_a_result_of_more_records_than_there_is_room_for(tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(live_flow())
        many = range(500)
        rows = reports(*((one, 0, 1) for one in many))
        writer.commit(batch(0, None, rows, graph=Adds([(one, 0) for one in many])))
        writer.commit(batch(1, stopped((9, 1, "a", 500, many)), graph=Adds()))
        with stores.open(tmp_path) as store:
            store.mark("reports", ids=[499])
            for limit in (1, 2, 30, 100, 600):
                sample = store.sample(limit=limit)
                assert sample.vertices.num_rows <= limit
                (result,) = [r for r in sample.vertices.to_pylist() if r["kind"] == "result"]
                assert result["marked"], "by a record that may not be shown"
                assert sample.totals.edges == 500
                assert sample.edges.num_rows <= 64


def test_what_batches_added(filled: tuple[Store, Made]) -> None:
    store, made = filled
    positions = store.watermarks().to_pylist()
    for before, after in zip(positions[:-1:5], positions[1::5], strict=False):
        sample = store.sample(after=before["position"], until=after["position"])
        number = after["batch"]
        results = {one for one, (came, _) in made.results.items() if came == number}
        records = {one for one, came in made.records.items() if came == number}
        behind = {one for result in results for one in made.results[result][1]}
        assert ids(sample, "result") == results
        assert ids(sample, "source") == records | behind
        assert sample.totals.vertices == len(results) + len(records)
        labels = sum(came == number for came in made.labels.values())
        assert sample.totals.labels == labels + len(results)
        assert (sample.position, sample.watermark) == (after["position"], at(number))


def test_watermarks_are_thinned_out_and_end_with_the_latest(filled: tuple[Store, Made]) -> None:
    store, _ = filled
    every = store.watermarks(limit=500).to_pylist()
    assert [row["batch"] for row in every] == list(range(30))
    for limit in (1, 2, 7, 15, 29):
        some = store.watermarks(limit=limit).to_pylist()
        assert len(some) <= limit
        assert some[-1] == every[-1]
        assert all(row in every for row in some)


def test_the_flow_that_committed_last_is_meant(tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(live_flow(name="one", query_id="q1"))
        writer.register(live_flow(name="other", query_id="q2"))
        writer.commit(batch(0, None, None, "q2", graph=Adds([(1, 0)])))
        writer.commit(batch(0, None, None, "q1", graph=Adds([(2, 0)])))
        with stores.open(tmp_path) as store:
            assert store.sample().flow == "one"
            writer.commit(batch(1, None, None, "q2", graph=Adds([(3, 0)])))
            sample = store.sample()
            assert (sample.flow, ids(sample, "source")) == ("other", {1, 3})
            with pytest.raises(UnknownName, match="flow 'third' has no live graph here"):
                store.sample("third")
            with pytest.raises(PredicateError, match="at='soon' is not a time"):
                store.sample(at="soon")


def test_a_store_without_a_live_graph(tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow())
        with hw.open(tmp_path) as store, pytest.raises(HeadwaterError, match="keeps a live graph"):
            store.sample()
