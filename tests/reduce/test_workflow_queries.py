"""Queries by entity: exact for open and finished jobs, across jobs and through flows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import headwater as hw
from headwater.errors import HeadwaterError, UnknownId, UnknownName
from headwater.query import Store
from headwater.testing.prov_graphs import Element, closure, dependencies, disordered
from headwater.testing.prov_strategies import Job, workflows
from tests.reduce.lab import Lab, finished, lab, moment, tell
from tests.store.small import batch, flow, reports, sink, source, stopped
from tests.support import amount


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Lab]:
    with lab(tmp_path / "store") as found:
        yield found


@pytest.fixture
def store(here: Lab, tmp_path: Path) -> Iterator[Store]:
    with hw.open(tmp_path / "store") as opened:
        yield opened


def used(execution: str, *names: str) -> list[Element]:
    function = execution.split("-")[0]
    return [Element("used", execution, name, function, execution) for name in names]


def made(execution: str, *names: str, output: bool = False) -> list[Element]:
    function = execution.split("-")[0]
    return [
        Element("wasGeneratedBy", name, execution, function, execution, output=output)
        for name in names
    ]


COUNT = [
    *used("map-1", "tweet-1"),
    *made("map-1", "a,1", "b,1"),
    *used("map-2", "tweet-2"),
    *made("map-2", "a,2"),
    *used("reduce-a", "a,1", "a,2"),
    *made("reduce-a", "count-a"),
    *used("reduce-b", "b,1"),
    *made("reduce-b", "count-b"),
]
REPORT = [*used("join-1", "count-a", "followers"), *made("join-1", "report")]


def names(table: pa.Table) -> list[str]:
    return sorted(set(table["id"].to_pylist()))


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.drop_columns(["event_time"]).to_pylist()]


@pytest.mark.parametrize("first", ["open", "finished", "full"])
@pytest.mark.parametrize("second", ["open", "finished"])
def test_jobs_chain_by_names(here: Lab, store: Store, first: str, second: str) -> None:
    counting = here.job("count", keep="full" if first == "full" else "reduced")
    tell(counting, 0, [(COUNT, True)])
    reporting = here.job("report")
    tell(reporting, 0, [(REPORT, True)])
    if first != "open":
        finished(counting)
    if second != "open":
        finished(reporting)

    assert rows(store.backward(entity="report")) == [
        ("followers", "entity", "report"),
        ("tweet-1", "entity", "count"),
        ("tweet-2", "entity", "count"),
    ]
    assert rows(store.backward(entity="report", steps=True))[0] == ("count-a", "entity", "report")
    assert rows(store.forward(entity="tweet-1")) == [
        ("count-b", "entity", "count"),
        ("report", "entity", "report"),
    ]
    assert names(store.forward(entity="tweet-1", steps=True)) == ["count-a", "count-b", "report"]
    assert store.depends("report", "tweet-2")
    assert store.depends("report", "count-a")
    assert not store.depends("count-b", "tweet-2")
    assert not store.depends("tweet-2", "count-b")


@pytest.mark.parametrize("state", ["open", "full"])
def test_intermediates_can_be_asked_while_all_is_held(here: Lab, store: Store, state: str) -> None:
    job = here.job("count", keep="full" if state == "full" else "reduced")
    tell(job, 0, [(COUNT[:6], True), (COUNT[6:], True)])
    if state == "full":
        finished(job)
    assert names(store.backward(entity="a,2")) == ["tweet-2"]
    assert names(store.forward(entity="a,2")) == ["count-a"]
    assert store.depends("count-a", "a,2")
    assert store.depends("a,2", "tweet-2")
    assert not store.depends("count-b", "a,2")


def test_an_intermediate_of_a_finished_job_is_unknown(here: Lab, store: Store) -> None:
    finished(here.told([[(COUNT, True)]]))
    with pytest.raises(UnknownId, match="no job has an input or output 'a,2'; .*keep='full'"):
        store.backward(entity="a,2")


def test_an_unknown_entity_is_an_error_with_a_hint(here: Lab, store: Store) -> None:
    with pytest.raises(UnknownId, match="the store has no job yet"):
        store.backward(entity="tweet-1")
    job = here.told([[(COUNT, True)]])
    for _ in range(2):
        with pytest.raises(UnknownId, match=r"'twet-1'; did you mean 'tweet-1'\?"):
            store.forward(entity="twet-1")
        with pytest.raises(UnknownId, match="did you mean 'count-a'"):
            store.depends("count-a", "count_a")
        if not job.ended:
            finished(job)


def test_ends_of_a_workflow_have_empty_answers(here: Lab, store: Store) -> None:
    alone = made("map-3", "from nothing")
    job = here.told([[([*COUNT, *alone, *used("map-4", "for nothing")], False)]])
    for _ in range(2):
        assert store.backward(entity="tweet-1").num_rows == 0
        assert store.forward(entity="count-a").num_rows == 0
        assert store.backward(entity="from nothing").num_rows == 0
        assert store.forward(entity="for nothing").num_rows == 0
        if not job.ended:
            finished(job)


def test_running_aggregates_are_outputs_that_lead_on(here: Lab, store: Store) -> None:
    told = [
        *used("sum-1", "x1"),
        *made("sum-1", "s1", output=True),
        *used("sum-2", "s1", "x2"),
        *made("sum-2", "s2", output=True),
    ]
    job = here.told([[(told[:2], True), (told[2:], True)]])
    for _ in range(2):
        assert names(store.backward(entity="s1")) == ["x1"]
        assert names(store.backward(entity="s2")) == ["x1", "x2"]
        assert names(store.forward(entity="x1")) == ["s1", "s2"]
        assert names(store.forward(entity="x2")) == ["s2"]
        if not job.ended:
            finished(job)


def test_functions_are_told_where_the_job_keeps_them(here: Lab, store: Store) -> None:
    job = here.job("count", functions=True)
    tell(job, 0, [(COUNT[:3], True)])
    tell(job, 1, [(COUNT[3:], True)])
    plain = here.job("report")
    tell(plain, 0, [(REPORT, True)])
    for _ in range(2):
        (row,) = store.backward(entity="count-b").to_pylist()
        assert sorted(row["functions"]) == ["map", "reduce"]
        assert {row["id"]: row["functions"] for row in store.backward(entity="report").to_pylist()}[
            "followers"
        ] is None
        assert sorted(store.forward(entity="tweet-2").to_pylist()[0]["id"]) == sorted("report")
        if not job.ended:
            finished(job)
    assert here.functions(job)[("count-b", "tweet-1")] == {"map", "reduce"}


def test_the_function_numbers_stay_from_batch_to_batch(here: Lab) -> None:
    job = here.job("chain", functions=True, global_batch=2)
    chain = [
        Element("wasDerivedFrom", f"e{n + 1}", f"e{n}", function)
        for n, function in enumerate(["f", "g", "h", "f", "i"])
    ]
    for number, element in enumerate(reversed(chain)):
        tell(job, number, [([element], True)])
    finished(job)
    assert here.functions(job) == {("e5", "e0"): {"f", "g", "h", "i"}}


def test_a_job_by_watermark_answers_from_both_its_parts(here: Lab, store: Store) -> None:
    chains = [
        Element("wasDerivedFrom", f"c{c}.{n}", f"c{c}.{n - 1}", seconds=100 * c + n)
        for c in range(4)
        for n in (1, 2)
    ]
    job = here.job(strategy="watermark", lifetime=10_000_000)
    for number in range(4):
        tell(job, number, [(chains[2 * number : 2 * number + 2], False)], moment(100 * number))
    assert here.dependencies(job) == {(f"c{c}.2", f"c{c}.0") for c in range(3)}
    for c in range(4):
        assert names(store.backward(entity=f"c{c}.2")) == [f"c{c}.0"]
        assert names(store.forward(entity=f"c{c}.0")) == [f"c{c}.2"]


def test_answers_go_through_flows_both_ways(here: Lab, store: Store, tmp_path: Path) -> None:
    """A foreign job made records of a source; another uses results of the sink."""
    here.writer.register(flow())
    here.writer.commit(
        batch(0, stopped((70, 1, "a", 1, [7, 8]), (90, 2, "b", 1, [9])), reports(*records(7, 8, 9)))
    )
    before = [
        Element("wasDerivedFrom", "hw:traffic/reports/7", "sensor-1"),
        Element("wasDerivedFrom", "hw:traffic/reports/9", "sensor-2"),
    ]
    after = [
        Element("wasDerivedFrom", "map", "hw:traffic/stopped/70"),
        Element("wasDerivedFrom", "map", "roads"),
    ]
    jobs = [here.job("sensors"), here.job("maps")]
    for job, told in zip(jobs, (before, after), strict=True):
        tell(job, 0, [(told, True)])
    for _ in range(2):
        assert rows(store.backward(entity="map")) == [
            ("hw:traffic/reports/8", "record", "traffic"),
            ("roads", "entity", "maps"),
            ("sensor-1", "entity", "sensors"),
        ]
        assert names(store.backward(entity="map", steps=True)) == [
            "hw:traffic/reports/7",
            "hw:traffic/reports/8",
            "hw:traffic/stopped/70",
            "roads",
            "sensor-1",
        ]
        assert names(store.backward(entity="hw:traffic/stopped/90")) == ["sensor-2"]
        assert rows(store.forward(entity="sensor-1")) == [("map", "entity", "maps")]
        assert rows(store.forward(entity="sensor-2")) == [
            ("hw:traffic/stopped/90", "result", "traffic")
        ]
        assert store.depends("map", "sensor-1")
        assert store.depends("map", "hw:traffic/reports/8")
        assert not store.depends("map", "sensor-2")
        for job in jobs:
            job.finish()
    record = store.backward(entity="map").to_pylist()[0]
    assert record["event_time"] == moment_of(8)
    (result,) = store.forward(entity="sensor-2").to_pylist()
    assert result["event_time"] is not None
    with pytest.raises(UnknownId):
        store.backward(entity="hw:traffic/stopped/71")
    assert store.backward(entity="hw:traffic/reports/8").num_rows == 0


def test_a_version_that_was_deployed_since_is_followed(here: Lab, store: Store) -> None:
    """The store was open before: the stream was known to it, its newer maker was not."""
    for version, record in (("v1", 7), ("v2", 8)):
        made_by = flow(source(), sink(streams=["out"]), name=version, query_id=version)
        here.writer.register(made_by)
        results = stopped((record * 10, 1, "a", 1, [record]))
        here.writer.commit(batch(0, results, reports(*records(record)), query_id=version))
        assert rows(store.backward(entity=f"hw:streams/out/{record}0")) == [
            (f"hw:{version}/reports/{record}", "record", version)
        ]
    assert store.depends("hw:streams/out/80", "hw:v2/reports/8")


def records(*tids: int) -> list[tuple[int, int, int]]:
    return [(tid, tid, 0) for tid in tids]


def moment_of(second: int) -> Any:
    from tests.store.small import at

    return at(second)


def test_another_process_asks_while_the_job_runs(here: Lab, tmp_path: Path) -> None:
    from tests.store.small import output

    tell(here.job("count"), 0, [(COUNT, True)])
    script = """
        import sys, headwater as hw
        store = hw.open(sys.argv[1])
        print(store.backward(entity="count-a")["id"].to_pylist(), store.jobs()["state"].to_pylist())
    """
    assert output(script, tmp_path / "store") == "['tweet-1', 'tweet-2'] ['open']"


def test_jobs_are_listed_with_what_was_counted(here: Lab, store: Store) -> None:
    from headwater.store.jobs import Counts

    job = here.job("count")
    counts = Counts(3, 600, {"self-loop": 2}, {"agent": 1})
    job.commit(0, moment(5), [], [], None, counts)
    tell(job, 1, [(COUNT, True)])
    (row,) = store.jobs().to_pylist()
    assert row["state"] == "open"
    assert row["elements"] == 3 + len(COUNT)
    assert row["rejected"] == [("self-loop", 2)]
    assert row["filtered"] == [("agent", 1)]
    assert row["batches"] == 2
    assert row["watermark"] == moment(5)
    assert (row["hot"], row["residue"]) == (3, 16)
    finished(job)
    (row,) = store.jobs().to_pylist()
    assert (row["state"], row["dependencies"], row["inputs"], row["outputs"]) == (
        "finished",
        3,
        2,
        2,
    )


AMOUNT = settings(
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    max_examples=amount(20, 300),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lab, Path]]:
    path = tmp_path_factory.mktemp("workflows") / "store"
    with lab(path) as found:
        yield found, path


_RUNS = iter(range(1 << 30))


@AMOUNT
@given(workflows(), st.lists(st.booleans(), min_size=3, max_size=3), st.integers(0, 1 << 30))
def test_random_workflows_equal_the_closure(
    shared: tuple[Lab, Path], jobs: list[Job], done: list[bool], seed: int
) -> None:
    """Whichever jobs are finished, answers are those of a plain closure over all jobs' edges."""
    here, path = shared
    run, random = f"{next(_RUNS)}:", Random(seed)
    pairs: set[tuple[str, str]] = set()
    writers = []
    running = set()  # An open job also knows where its running results went.
    with hw.open(path) as store:
        for job, ends in zip(jobs, done, strict=False):
            told = [
                Element(
                    e.type,
                    run + e.source,
                    run + e.destination,
                    e.function,
                    e.execution and run + e.execution,
                    e.node,
                    e.seconds,
                    e.output,
                )
                for e in disordered(job.elements, 30, random)
            ]
            half = len(told) // 2
            writer = here.told([[(told[:half], True)], [(told[half:], random.random() < 0.5)]])
            pairs |= dependencies(told)
            running |= {element.source for element in told if element.output and not ends}
            writers.append(writer)
            if ends:
                finished(writer)
        below = closure(pairs)
        above = closure({(cause, effect) for effect, cause in pairs})
        for entity in below.keys() | above.keys():
            back = {name for name in below.get(entity, ()) if name not in below}
            onward = {name for name in above.get(entity, ()) if name not in above}
            assert set(store.backward(entity=entity)["id"].to_pylist()) == back
            if entity not in running:
                assert set(store.forward(entity=entity)["id"].to_pylist()) == onward
            assert set(store.backward(entity=entity, steps=True)["id"].to_pylist()) == below.get(
                entity, set()
            )
        for effect in random.sample(sorted(below), min(3, len(below))):
            for cause in random.sample(
                sorted(above.keys() - running), min(3, len(above.keys() - running))
            ):
                assert store.depends(effect, cause) == (cause in below[effect])
    for writer in writers:
        writer.finish()


# --- paths --------------------------------------------------------------------------------------


def listed(table: pa.Table) -> list[list[str]]:
    found: dict[int, list[str]] = {}
    for row in table.to_pylist():
        found.setdefault(row["path"], []).append(row["name"])
        assert row["step"] == len(found[row["path"]])
    return sorted(found.values())


@pytest.mark.parametrize("told_functions", [False, True])
def test_paths_through_a_function(here: Lab, store: Store, told_functions: bool) -> None:
    timed = [
        Element(e.type, e.source, e.destination, e.function, e.execution, "n1", second)
        for second, e in enumerate([*COUNT, Element("wasDerivedFrom", "odd", "tweet-9")])
    ]
    job = here.job("count", keep="full", functions=told_functions)
    tell(job, 0, [(timed[:5], True), (timed[5:], True)])
    for _ in range(2):
        table = store.paths("count", through="reduce")
        assert table.column_names == ["path", "step", "name", "kind", "function"]
        assert listed(table) == [
            ["count-a", "reduce-a", "a,1", "map-1", "tweet-1"],
            ["count-a", "reduce-a", "a,2", "map-2", "tweet-2"],
            ["count-b", "reduce-b", "b,1", "map-1", "tweet-1"],
        ]
        first = table.to_pylist()[:5]
        assert [row["kind"] for row in first] == ["entity", "activity"] * 2 + ["entity"]
        assert [row["function"] for row in first] == [None, "reduce", None, "map", None]
        assert listed(store.paths("count", through="map", output="count-b")) == [
            ["count-b", "reduce-b", "b,1", "map-1", "tweet-1"]
        ]
        assert len(listed(store.paths("count"))) == 4
        assert listed(store.paths("count", through="reduce", input="tweet-2")) == [
            ["count-a", "reduce-a", "a,2", "map-2", "tweet-2"]
        ]
        cut = store.paths("count", through="reduce", limit=2)
        assert len(listed(cut)) == 2
        assert b"the first 2 paths" in cut.schema.metadata[b"note"]
        assert not (store.paths("count", limit=4).schema.metadata or {}).get(b"note")
        with pytest.raises(UnknownName, match="no function 'shuffle'; the store has: map, reduce"):
            store.paths("count", through="shuffle")
        with pytest.raises(UnknownId, match="job 'count' has no entity 'count-c'"):
            store.paths("count", output="count-c")
        job.finish()


def test_paths_go_around_a_cycle_and_not_in_it(here: Lab, store: Store) -> None:
    told = [Element("wasDerivedFrom", *pair) for pair in ("oa", "ab", "ba", "bi")]
    tell(here.job("odd"), 0, [(told, False)])
    assert listed(store.paths("odd")) == [["o", "a", "b", "i"]]


def test_many_paths_are_cut_without_trying_all(here: Lab, store: Store) -> None:
    """Forty diamonds in a row have 2^40 paths."""
    told = [
        Element("wasDerivedFrom", *pair)
        for n in range(40)
        for side in "ab"
        for pair in ((f"{n}", f"{n}{side}"), (f"{n}{side}", f"{n + 1}"))
    ]
    tell(here.job("diamonds"), 0, [(told, False)])
    assert len(listed(store.paths("diamonds", limit=7))) == 7


def test_paths_need_all_edges(here: Lab, store: Store) -> None:
    done = here.told([[(COUNT, True)]])
    finished(done)
    with pytest.raises(HeadwaterError, match="is finished, and only its dependencies are kept"):
        store.paths(done.settings.job)
    forgetful = here.told([[(COUNT, True)]], strategy="window")
    with pytest.raises(HeadwaterError, match="strategy 'window', which forgets edges"):
        store.paths(forgetful.settings.job)
    with pytest.raises(UnknownName, match="no job 'nothing'"):
        store.paths("nothing")
