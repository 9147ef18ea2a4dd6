"""What looks wrong in a job: slow nodes, entities that nobody generated or used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater as hw
from headwater.errors import UnknownName
from headwater.query import Store
from headwater.store.jobs import JobWriter
from headwater.testing.prov_graphs import Element
from tests.reduce.lab import Lab, finished, lab, moment, tell


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Lab]:
    with lab(tmp_path / "store") as found:
        yield found


@pytest.fixture
def store(here: Lab, tmp_path: Path) -> Iterator[Store]:
    with hw.open(tmp_path / "store") as opened:
        yield opened


def execution(
    function: str,
    number: int,
    used: list[str],
    made: list[str],
    *,
    node: str | None = "n0",
    start: int = 0,
    seconds: int = 1,
) -> list[Element]:
    """An execution that tells what it used at its start, and what it made at its end."""
    name, at = f"{function}-{number}", start
    return [
        *(Element("used", name, one, function, name, node, at) for one in used),
        *(Element("wasGeneratedBy", one, name, function, name, node, at + seconds) for one in made),
    ]


def told(here: Lab, elements: list[Element], **settings: object) -> JobWriter:
    """A job that got the elements in three batches, so that executions are torn."""
    job = here.job("job", **settings)
    for number in range(3):
        tell(job, number, [(elements[number::3], True)])
    return job


def test_slow_nodes_are_told_with_figures(here: Lab, store: Store) -> None:
    elements = []
    for number in range(24):
        node = f"n{number % 4}"
        long = {"n2": 9, "n3": 5}.get(node, 4)
        elements += execution(
            "map", number, [f"i{number}"], [f"m{number}"], node=node, seconds=long
        )
        elements += execution("sort", number, [f"m{number}"], [f"s{number}"], node=node, seconds=3)
    job = told(here, elements)
    for _ in range(2):
        found = store.diagnosis("job")
        assert found.slow_nodes.to_pylist() == [
            {
                "function": "map",
                "node": "n2",
                "executions": 6,
                "median_seconds": 9.0,
                "others_seconds": 4.0,
                "ratio": 2.25,
            }
        ]
        assert found.never_generated.num_rows == found.never_used.num_rows == 0
        job.finish()
    assert store.diagnosis("job").finished


def test_one_odd_execution_makes_no_slow_node(here: Lab, store: Store) -> None:
    elements = []
    for number in range(12):
        elements += execution(
            "map", number, [f"i{number}"], [f"m{number}"],
            node=f"n{number % 2}", seconds=100 if number == 3 else 4,
        )  # fmt: skip
    # And two executions say nothing about a node.
    elements += execution("map", 50, ["i50"], ["m50"], node="n9", seconds=100)
    told(here, elements)
    assert store.diagnosis("job").slow_nodes.num_rows == 0


def forgetful() -> list[Element]:
    """Map makes pairs of tweets, reduce counts of pairs; one pair nobody made, one nobody took."""
    elements = []
    for number in range(8):
        elements += execution("map", number, [f"tweet{number}"], [f"pair{number}"])
    for number in range(7):
        elements += execution("reduce", number, [f"pair{number}"], [f"count{number}"])
    return [*elements, *execution("reduce", 9, ["lost pair"], ["count9"])]


@pytest.mark.parametrize("functions", [False, True])
def test_entities_that_somebody_forgot(here: Lab, store: Store, functions: bool) -> None:
    job = told(here, forgetful(), functions=functions)
    for _ in range(2):
        found = store.diagnosis("job")
        assert found.never_generated.to_pylist() == [{"entity": "lost pair", "function": "reduce"}]
        assert found.never_used.to_pylist() == [{"entity": "pair7", "function": "map"}]
        job.finish()


def test_they_are_told_without_times_where_functions_are_kept(here: Lab, store: Store) -> None:
    untimed = [
        Element("wasDerivedFrom", f"{made}{n}", f"{of}{n}", function)
        for made, of, function in (("pair", "tweet", "map"), ("count", "pair", "reduce"))
        for n in range(6)
    ]
    untimed.remove(Element("wasDerivedFrom", "pair2", "tweet2", "map"))
    untimed.remove(Element("wasDerivedFrom", "count4", "pair4", "reduce"))
    told(here, untimed, functions=True)
    found = store.diagnosis("job")
    assert found.never_generated.to_pylist() == [{"entity": "pair2", "function": "reduce"}]
    assert found.never_used.to_pylist() == [{"entity": "pair4", "function": "map"}]


def test_outputs_that_are_marked_need_no_use(here: Lab, store: Store) -> None:
    elements = forgetful()
    marked = [
        Element(**{**_fields(e), "output": True}) if e.source == "pair7" else e for e in elements
    ]
    told(here, marked)
    assert store.diagnosis("job").never_used.num_rows == 0


def _fields(element: Element) -> dict[str, object]:
    return {name: getattr(element, name) for name in Element.__slots__}  # type: ignore[attr-defined]


def test_it_changes_as_the_stream_runs(here: Lab, store: Store) -> None:
    elements = forgetful()
    job = here.job("job")
    tell(job, 0, [(elements, True)])
    assert store.diagnosis("job").never_generated.num_rows == 1
    late = execution("map", 20, ["tweet20"], ["lost pair"])
    tell(job, 1, [(late, True)])
    assert store.diagnosis("job").never_generated.num_rows == 0
    assert store.diagnosis("job").never_used.num_rows == 1


def test_it_is_there_for_a_stream_without_end(here: Lab, store: Store) -> None:
    job = here.job("job", strategy="watermark", lifetime=1_000_000_000, functions=True)
    tell(job, 0, [(forgetful(), False)], moment(0))
    found = store.diagnosis("job")
    assert found.never_generated.to_pylist() == [{"entity": "lost pair", "function": "reduce"}]


def test_a_job_that_tells_neither_times_nor_functions_has_no_findings(
    here: Lab, store: Store
) -> None:
    plain = [Element(e.type, e.source, e.destination) for e in forgetful()]
    finished(told(here, plain))
    found = store.diagnosis("job")
    assert found.slow_nodes.num_rows == found.never_used.num_rows == 0
    with pytest.raises(UnknownName, match="no job 'jobb'; the store has: job; did you mean 'job'"):
        store.diagnosis("jobb")
