"""The global reducer: whatever comes, in any order and pieces, gives the closure's dependencies."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.testing.prov_graphs import Element, closure, dependencies, disordered, duplicated
from headwater.testing.prov_strategies import cyclic_jobs, jobs
from tests.reduce.lab import Lab, Plan, finished, lab
from tests.support import amount


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab(tmp_path_factory.mktemp("jobs") / "store") as found:
        yield found


@st.composite
def plans(draw: st.DrawFn, told: st.SearchStrategy[list[Element]]) -> tuple[list[Element], Plan]:
    """A job, and how its elements come: disordered, some twice, in blocks and batches."""
    elements = draw(told)
    random = Random(draw(st.integers(0, 1 << 30)))
    order = disordered(elements, draw(st.sampled_from([0, 10, 50, 100])), random)
    order = duplicated(order, draw(st.sampled_from([0, 0, 30])), random)
    batches, at = [], 0
    while at < len(order):
        blocks = []
        for _ in range(draw(st.integers(1, 3))):
            size = draw(st.sampled_from([1, 2, 3, 5, 10, 40]))
            if order[at : at + size]:
                blocks.append((order[at : at + size], draw(st.booleans())))
            at += size
        batches.append(blocks)
    return elements, batches


AMOUNT = settings(
    max_examples=amount(60, 1_000), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@AMOUNT
@given(plans(jobs()), st.sampled_from([1, 5, 30, 100_000]))
def test_grouping_equals_the_closure(
    here: Lab, plan: tuple[list[Element], Plan], global_batch: int
) -> None:
    elements, batches = plan
    job = here.told(batches, global_batch=global_batch)
    done = finished(job)
    expected = dependencies(elements)
    assert here.dependencies(job) == expected
    assert done.dependencies == len(expected)
    assert done.cycles == ()


@AMOUNT
@given(plans(cyclic_jobs()), st.sampled_from([1, 5, 100_000]))
def test_cycles_change_no_dependency_and_are_told(
    here: Lab, plan: tuple[list[Element], Plan], global_batch: int
) -> None:
    elements, batches = plan
    job = here.told(batches, global_batch=global_batch)
    done = finished(job)
    assert here.dependencies(job) == dependencies(elements)
    below = closure({element.edge for element in elements})
    cyclic = {vertex for vertex, causes in below.items() if vertex in causes}
    if not cyclic:
        assert done.cycles == ()
