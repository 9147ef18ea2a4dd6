"""Jobs from their first batch to their end: refused, counted, completed, bounded, out of core."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.errors import HeadwaterError, IdCollision, StoreError
from headwater.reduce.blocks import NO_TIME, Block
from headwater.store import EmbeddedWriter
from headwater.store.jobs import Counts, JobSettings, JobWriter
from headwater.testing.prov_graphs import Element, block, closure, dependencies
from headwater.testing.prov_strategies import cyclic_jobs, jobs
from tests.reduce.lab import Lab, finished, lab, moment, tell
from tests.support import amount


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab(tmp_path_factory.mktemp("jobs") / "store") as found:
        yield found


def chain(length: int, name: str = "e") -> list[Element]:
    return [
        Element("wasDerivedFrom", f"{name}{n + 1}", f"{name}{n}", seconds=n) for n in range(length)
    ]


# --- a job goes on as it was begun ----------------------------------------------------------------


def again(here: Lab, job: JobWriter, query_id: str | None = None, **changes: Any) -> JobWriter:
    wanted = replace(job.settings, **changes)
    return JobWriter(here.writer, wanted, query_id or f"query of {job.settings.job}")


def test_a_job_goes_on_with_its_query(here: Lab) -> None:
    job = here.told([[(chain(3)[:1], True)]])
    resumed = again(here, job, global_batch=7)
    assert resumed.holds(0)
    assert not resumed.holds(1)
    tell(resumed, 1, [(chain(3)[1:], True)], ended=True)
    assert again(here, job).ended
    finished(resumed)
    assert here.dependencies(job) == {("e3", "e0")}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"input": "elsewhere"}, "reads in, not elsewhere; give each input its own job name"),
        ({"strategy": "window"}, "was begun with strategy='grouping', not 'window'"),
        ({"functions": True}, "was begun with functions=False, not True"),
        ({"lifetime": 5}, "was begun with lifetime=600000000, not 5"),
        ({"query_id": "other"}, "was begun with another checkpoint (here); go on with that one"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_another_job_of_that_name_is_refused_in_one_line(
    here: Lab, changes: dict[str, Any], says: str
) -> None:
    job = here.job(checkpoint="here")
    tell(job, 0, [(chain(3), True)])
    with pytest.raises(StoreError) as refused:
        again(here, job, **changes)
    assert str(refused.value).startswith(f"job {job.settings.job!r} {says}")
    assert "\n" not in str(refused.value)


def test_a_finished_job_takes_no_more(here: Lab) -> None:
    job = here.told([[(chain(3), True)]])
    finished(job)
    assert job.finish().held
    with pytest.raises(StoreError, match="is finished: it takes no more elements"):
        again(here, job)


def test_a_job_without_a_batch_may_change_its_checkpoint(here: Lab) -> None:
    job = again(here, here.job(), "another query")
    tell(job, 0, [(chain(2), True)])
    finished(job)


def test_all_can_be_kept_only_with_grouping(here: Lab) -> None:
    with pytest.raises(StoreError, match="'watermark' forgets edges on the way"):
        here.job(strategy="watermark", keep="full")


# --- batches --------------------------------------------------------------------------------------


def test_a_batch_is_written_once(here: Lab) -> None:
    job = here.job()
    first = tell(job, 0, [(chain(5), True)])
    assert (first.held, first.hot, first.residue) == (False, 1, 8)
    second = tell(job, 0, [(chain(50, "other"), True)])
    assert second.held
    assert job.counts["elements"] == 5
    finished(job)
    assert here.dependencies(job) == {("e5", "e0")}


def test_a_batch_that_fails_leaves_nothing(here: Lab) -> None:
    job = here.job()
    tell(job, 0, [(chain(3), True)])
    before = job.counts
    bad = replace(block(chain(2, "x")), names=pa.array([None, "x1", "x2"], pa.string()))
    spans = pa.table({"execution": ["no number"]})
    with pytest.raises(HeadwaterError, match="committing batch 1 of job"):
        job.commit(1, None, [bad], [], spans, Counts(2))
    assert job.counts == before
    assert not job.holds(1)
    finished(job)
    assert here.dependencies(job) == {("e3", "e0")}


def test_pending_edges_are_contracted_once_they_are_enough(here: Lab) -> None:
    job = here.job(global_batch=10)
    states = [tell(job, n, [([element], True)]) for n, element in enumerate(chain(25))]
    assert [n for n, one in enumerate(states) if one.contracted] == [9, 19]
    assert [one.state for one in states][8:11] == [9, 1, 2]
    finished(job)
    assert here.dependencies(job) == {("e25", "e0")}


def test_counts_add_up(here: Lab) -> None:
    job = here.job()
    job.commit(0, None, [], [], None, Counts(4, 70, {"late": 1}, {"agent": 2}))
    job.commit(1, None, [], [], None, Counts(1, 30, {"late": 2, "self-loop": 1}, {}))
    counted = job.counts
    assert (counted["elements"], counted["bytes"]) == (5, 100)
    assert counted["rejected"] == {"late": 3, "self-loop": 1}
    assert counted["filtered"] == {"agent": 2}


def test_one_id_with_two_names_is_an_error(here: Lab) -> None:
    job = here.job()
    told = block(chain(1))
    job.commit(0, None, [told], [], None, Counts(1))
    other = replace(told, names=pa.array(["e0", "impostor"]))
    assert other.ids.tolist() == told.ids.tolist()
    with pytest.raises(IdCollision, match="have one hash .* rename one of them"):
        job.commit(1, None, [other], [], None, Counts(1))
    assert not job.holds(1)


def test_one_id_with_two_names_in_two_jobs_is_an_error(here: Lab) -> None:
    finished(here.told([[(chain(1, "own"), True)]]))
    told = block(chain(1, "own"))
    job = here.job()
    job.commit(0, None, [replace(told, names=pa.array(["a", "b"]))], [], None, Counts(1))
    with pytest.raises(IdCollision):
        job.finish()
    assert not job.ended


# --- completion -----------------------------------------------------------------------------------


def test_what_was_held_goes_unless_all_is_kept(here: Lab) -> None:
    for keep, left in (("reduced", 0), ("full", 7)):
        job = here.told([[(chain(5), True)]], keep=keep)
        finished(job)
        no = here.rows(f"SELECT job_no FROM jobs WHERE job = '{job.settings.job}'")[0][0]
        tables = here.rows(
            f"SELECT count(*) FROM duckdb_tables() WHERE table_name LIKE '%\\_{no}' ESCAPE '\\'"
        )
        assert tables == [(left,)]


def test_dependencies_lie_in_both_orders_once_compacted(tmp_path: Path) -> None:
    with lab(tmp_path / "store") as here:
        expected = set()
        for part in range(3):
            told = [
                Element("wasDerivedFrom", f"o{part}.{n % 7}", f"i{part}.{n}") for n in range(40)
            ]
            expected |= {(part + 1, e.source, e.destination) for e in told}
            finished(here.told([[(told, True)]]))
            here.writer.compact()
        assert here.rows("SELECT count(*) FROM fresh_dependencies") == [(0,)]
        for table in ("dependencies", "dependencies_by_input"):
            rows = here.rows(
                f"SELECT job_no, o.name, i.name FROM {table} d JOIN entities o ON o.id = output "
                "JOIN entities i ON i.id = input"
            )
            assert sorted(rows) == sorted(expected)
        # The last compaction only appended a run: the one before had sorted all there was.
        order = here.rows("SELECT output FROM dependencies ORDER BY rowid")
        assert order[:80] == sorted(order[:80])
        order = here.rows("SELECT input FROM dependencies_by_input ORDER BY rowid")
        assert order[:80] == sorted(order[:80])


def test_a_deep_chain_takes_few_rounds(here: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = watched(monkeypatch)
    ids = np.random.default_rng(1).permutation(50_000).astype(np.int64) * 2
    job = here.job(global_batch=1 << 40)
    order = np.random.default_rng(2).permutation(len(ids) - 1)
    job.commit(0, None, [numbered(ids[:-1][order], ids[1:][order])], [], None, Counts())
    finished(job)
    assert here.dependencies(job) == {(f"v{ids[0]}", f"v{ids[-1]}")}
    assert rounds[0] <= 3


def test_a_deep_ladder_takes_few_rounds(here: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each vertex of a rung has two causes and two effects: none has a single edge."""
    rounds = watched(monkeypatch)
    rungs = np.arange(4_000, dtype=np.int64).reshape(-1, 2) * 2
    source = np.concatenate([rungs[:-1, side] for side in (0, 0, 1, 1)])
    destination = np.concatenate([rungs[1:, side] for side in (0, 1, 0, 1)])
    job = here.job(global_batch=1 << 40)
    job.commit(0, None, [numbered(source, destination)], [], None, Counts())
    done = finished(job)
    assert (done.dependencies, done.inputs, done.outputs) == (4, 2, 2)
    assert rounds[0] < 60


def test_where_all_depends_on_all(here: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = watched(monkeypatch)
    random = np.random.default_rng(3)
    layers = np.arange(20 * 30, dtype=np.int64).reshape(20, 30) * 2
    edges = {
        (int(one), int(other))
        for above, below in pairwise(layers)
        for one in above
        for other in random.choice(below, 4)
    }
    source, destination = np.array(sorted(edges)).T
    job = here.job(global_batch=1 << 40)
    job.commit(0, None, [numbered(source, destination)], [], None, Counts())
    finished(job)
    below = closure(edges)
    expected = {
        (f"v{output}", f"v{cause}")
        for output in below.keys() - set(destination.tolist())
        for cause in below[output] - below.keys()
    }
    assert here.dependencies(job) == expected
    assert rounds[0] < 20


def test_completion_under_a_small_memory_limit(tmp_path: Path) -> None:
    with lab(tmp_path / "store") as here:
        random = np.random.default_rng(4)
        tweets, pairs, tags = 60_000, 150_000, 500
        pair = np.arange(pairs, dtype=np.int64) * 2
        tweet = (pairs + random.integers(0, tweets, pairs)) * 2
        tag = (pairs + tweets + random.integers(0, tags, pairs)) * 2
        source, destination = np.concatenate([pair, tag]), np.concatenate([tweet, pair])
        order = random.permutation(len(source))
        job = here.job(global_batch=1 << 40)
        job.commit(0, None, [numbered(source[order], destination[order])], [], None, Counts())
        here.rows("SET memory_limit = '48MB'")
        done = finished(job)
        assert done.dependencies == len(set(zip(tag.tolist(), tweet.tolist(), strict=True)))


def numbered(source: Any, destination: Any) -> Block:
    """A block of entities by number."""
    ids = np.unique(np.concatenate([source, destination]))
    none, count = np.zeros(len(source), np.int64), len(source)
    names = pa.array([f"v{number}" for number in ids.tolist()])
    untold = np.full(count, NO_TIME)
    kept = np.empty(0, np.int64)
    return Block(source, destination, untold, none, none.astype(bool), (), kept, ids, names, count)


def watched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rounds eliminations take from here on."""
    from headwater.store.jobs import settling

    seen: list[int] = []
    plain = settling.settle

    def settle(*args: Any, **more: Any) -> Any:
        found = plain(*args, **more)
        seen.append(found.rounds)
        return found

    monkeypatch.setattr(settling, "settle", settle)
    return seen


def test_cycles_are_told_by_their_members(here: Lab) -> None:
    """Two cycles apart, one of which two blocks have torn up and contracted."""
    told = [
        *(Element("wasDerivedFrom", *pair) for pair in ("oa", "ab", "bc", "ca", "ci", "xy", "yx")),
        Element("used", "f", "z"),
        Element("wasGeneratedBy", "z", "f"),
    ]
    job = here.told([[(told[:3], True)], [(told[3:], True)]], keep="full")
    done = finished(job)
    assert sorted(done.cycles) == [("a", "b", "c"), ("f", "z"), ("x", "y")]
    assert here.dependencies(job) == {("o", "i")}


@settings(max_examples=amount(25, 300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cyclic_jobs(), st.integers(1, 30), st.booleans())
def test_all_members_of_cycles_are_told(
    here: Lab, told: list[Element], cut: int, contracts: bool
) -> None:
    job = here.told([[(told[:cut], contracts), (told[cut:], True)]], keep="full")
    done = finished(job)
    below = closure({element.edge for element in told})
    cyclic = sorted(vertex[1] for vertex, causes in below.items() if vertex in causes)
    assert sorted(name for members in done.cycles for name in members) == cyclic


@settings(max_examples=amount(25, 300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(jobs(), st.integers(1, 30), st.sampled_from([3, 100_000]))
def test_functions_are_those_of_all_paths(
    here: Lab, told: list[Element], cut: int, global_batch: int
) -> None:
    job = here.told(
        [[(told[:cut], True)], [(told[cut:], True)]], functions=True, global_batch=global_batch
    )
    finished(job)
    below = closure({element.edge for element in told})

    def leads(one: Any, other: Any) -> bool:
        return one == other or other in below.get(one, ())

    assert here.functions(job) == {
        (output, cause): {
            element.function
            for element in told
            if element.function
            and leads(("entity", output), element.edge[0])
            and leads(element.edge[1], ("entity", cause))
        }
        for output, cause in dependencies(told)
    }


# --- window: inexact by design --------------------------------------------------------------------


@settings(max_examples=amount(15, 200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cyclic_jobs(), st.integers(1, 12), st.sampled_from([1, 3, 20]))
def test_window_forgets_but_invents_nothing_and_does_not_fail(
    here: Lab, told: list[Element], size: int, window: int
) -> None:
    random = Random(size)
    shuffled = random.sample(told, len(told))
    batches = [[(shuffled[at : at + size], True)] for at in range(0, len(told), size)]
    job = here.told(batches, strategy="window", window=window, global_batch=5)
    no = here.rows(f"SELECT job_no FROM jobs WHERE job = '{job.settings.job}'")[0][0]
    assert here.rows(f"SELECT count(*) FROM residue_{no}")[0][0] <= window
    finished(job)
    below = closure({element.edge for element in told})
    for output, cause in here.dependencies(job):
        assert ("entity", cause) in below["entity", output]


# --- watermark ------------------------------------------------------------------------------------


def lifetime(told: list[Element]) -> int:
    """The longest time (µs) from one edge of a vertex to its next."""
    times: dict[Any, list[int]] = {}
    for element in told:
        for vertex in element.edge:
            times.setdefault(vertex, []).append(element.seconds or 0)
    gaps = [
        later - earlier
        for seconds in times.values()
        for earlier, later in pairwise(sorted(seconds))
    ]
    return 1_000_000 * max(gaps, default=0)


@settings(max_examples=amount(15, 300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.one_of(jobs(), cyclic_jobs()), min_size=2, max_size=4),
    st.integers(0, 1 << 30),
    st.sampled_from([0, 3, 20]),
    st.integers(1, 12),
)
def test_watermark_equals_the_closure_within_its_bound(
    here: Lab, parts: list[list[Element]], seed: int, delay: int, size: int
) -> None:
    """Several workflows one after the other, out of order by up to `delay` seconds."""
    told = [
        replace(
            element, source=f"{part}/{element.source}", destination=f"{part}/{element.destination}"
        )
        for part, elements in enumerate(parts)
        for element in elements
    ]
    told = [replace(element, seconds=second) for second, element in enumerate(told)]
    random = Random(seed)
    order = sorted(told, key=lambda element: (element.seconds or 0) + random.uniform(0, delay))
    job = here.job(strategy="watermark", lifetime=lifetime(told))
    seen = 0
    for number, at in enumerate(range(0, len(order), size)):
        some = order[at : at + size]
        tell(job, number, [(some, False)], moment(seen - delay) if number else None)
        seen = max(seen, *(element.seconds or 0 for element in some))
    finished(job)
    assert here.dependencies(job) == dependencies(told)


def test_an_endless_stream_is_held_in_bounded_state(here: Lab) -> None:
    """Chains of six, begun one a second: most are written out while the stream goes on."""
    told = sorted(
        (
            Element("wasDerivedFrom", f"c{c}.{n + 1}", f"c{c}.{n}", seconds=c + 2 * n)
            for c in range(600)
            for n in range(5)
        ),
        key=lambda element: element.seconds or 0,
    )
    job = here.job(strategy="watermark", lifetime=3_000_000)
    states, written = [], 0
    for number, at in enumerate(range(0, len(told), 100)):
        some = told[at : at + 100]
        done = tell(job, number, [(some, False)], moment(some[0].seconds or 0))
        states.append(done.state)
        written += done.dependencies
    no = here.rows(f"SELECT job_no FROM jobs WHERE job = '{job.settings.job}'")[0][0]
    assert max(states) < 300
    assert written > 550
    for table in ("hot", "last", "name"):
        assert here.rows(f"SELECT count(*) FROM {table}_{no}")[0][0] < 400
    finished(job)
    assert here.dependencies(job) == {(f"c{c}.5", f"c{c}.0") for c in range(600)}


def test_running_results_are_written_out_as_they_pass(here: Lab) -> None:
    told = [
        element
        for n in range(20)
        for element in (
            Element("wasDerivedFrom", f"sum{n}", f"x{n}", seconds=10 * n, output=True),
            *(
                [Element("wasDerivedFrom", f"sum{n}", f"sum{n - 1}", seconds=10 * n, output=True)]
                if n
                else []
            ),
        )
    ]
    job = here.job(strategy="watermark", lifetime=12_000_000)
    written = [
        tell(job, number, [([element], False)], moment(element.seconds or 0)).dependencies
        for number, element in enumerate(told)
    ]
    assert sum(written) > 100
    finished(job)
    assert here.dependencies(job) == dependencies(told)


def test_a_killed_process_leaves_the_job_as_it_was_committed(tmp_path: Path) -> None:
    from tests.store.small import python

    script = """
        import os, sys
        sys.path.insert(0, os.getcwd())
        from pathlib import Path
        from tests.reduce.lab import Lab, tell
        from headwater.store import EmbeddedWriter
        from tests.reduce.test_completion import chain
        job = Lab(EmbeddedWriter.open(sys.argv[1])).job("killed")
        for number, element in enumerate(chain(6)):
            tell(job, number, [([element], True)])
        os.kill(os.getpid(), 9)
    """
    process = python(script, tmp_path / "store")
    assert process.wait(60) == -9
    process.communicate()
    with EmbeddedWriter.open(tmp_path / "store") as writer:
        job = JobWriter(writer, JobSettings("killed", "in"), "query of killed")
        assert job.holds(5)
        tell(job, 5, [(chain(6)[5:], True)])
        tell(job, 6, [(chain(7)[6:], True)])
        finished(job)
        assert Lab(writer).dependencies(job) == {("e7", "e0")}
