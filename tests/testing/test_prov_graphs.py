"""The oracle of `reduce` on examples worked by hand, and what it makes of a job's stream."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.testing.prov_graphs import (
    Element,
    closure,
    dependencies,
    disordered,
    duplicated,
    groups,
    messages,
    split,
)
from headwater.testing.prov_strategies import Job, jobs, workflows
from tests.support import amount

randoms = st.randoms(use_true_random=False)


class TestDependencies:
    def test_an_activity_is_neither_input_nor_output(self) -> None:
        told = [
            Element("wasGeneratedBy", "made of nothing", "m1"),
            Element("used", "m2", "used for nothing"),
            Element("used", "m3", "in"),
            Element("wasGeneratedBy", "out", "m3"),
        ]
        assert dependencies(told) == {("out", "in")}

    def test_an_activity_and_an_entity_of_one_name_are_two(self) -> None:
        told = [Element("used", "x", "in"), Element("wasGeneratedBy", "out", "y")]
        told += [Element("wasDerivedFrom", "x", "other")]
        assert dependencies(told) == {("x", "other")}

    def test_a_kept_or_marked_entity_is_an_output_that_hands_on(self) -> None:
        told = [Element("wasDerivedFrom", "b", "a"), Element("hadMember", "c", "b")]
        assert dependencies(told) == {("c", "a")}
        both = {("b", "a"), ("c", "a")}
        assert dependencies(told, kept=["b"]) == both
        marked = Element("wasDerivedFrom", "b", "a", output=True)
        assert dependencies([marked, told[1]]) == both

    def test_cycles_hide_nothing_behind_them(self) -> None:
        edges = [("out", "a"), ("a", "b"), ("b", "a"), ("b", "in")]
        told = [Element("wasDerivedFrom", effect, cause) for effect, cause in edges]
        assert dependencies(told) == {("out", "in")}
        assert closure(edges)["a"] == {"a", "b", "in"}
        assert closure(edges)["out"] == {"a", "b", "in"}


class TestStreams:
    def test_as_many_are_out_of_order_as_asked(self) -> None:
        numbers = list(range(1_000))
        assert disordered(numbers, 0, Random(1)) == numbers
        for within in (None, 50):
            told = disordered(numbers, 30, Random(1), within)
            assert sorted(told) == numbers
            moved = [abs(place - number) for place, number in enumerate(told) if place != number]
            assert 200 < len(moved) <= 300
            assert max(moved) < 150 if within else max(moved) > 500

    def test_what_is_told_again_comes_later(self) -> None:
        told = duplicated(list(range(100)), 20, Random(1))
        assert len(told) == 120
        assert list(dict.fromkeys(told)) == list(range(100))

    @settings(max_examples=amount(50, 500), deadline=None)
    @given(jobs(), randoms)
    def test_groups_and_their_parts_tell_each_element_once(
        self, told: list[Element], random: Random
    ) -> None:
        grouped = groups(told)
        parts = split(grouped, random)
        for some in (grouped, parts):
            assert Counter(e for group in some for e in group) == Counter(told)
            assert all(len({(e.execution, e.type) for e in group}) == 1 for group in some)
        assert len(parts) == len(grouped) + sum(len(group) > 1 for group in grouped)
        lines = messages(grouped)
        assert [len(line.get("group", "1")) for line in lines] == [len(g) for g in grouped]

    def test_an_element_in_json(self) -> None:
        element = Element("hadMember", "c", "e", "pack", "p1", "n1", seconds=1, output=True)
        assert element.to_json() == {
            "type": "hadMember",
            "collection": "c",
            "entity": "e",
            "function": "pack",
            "execution": "p1",
            "node": "n1",
            "time": "2026-01-01T00:00:01+00:00",
            "output": True,
        }


class TestStrategies:
    @settings(max_examples=amount(50, 500), deadline=None)
    @given(workflows())
    def test_jobs_have_no_cycles_and_chain_by_outputs(self, flow: list[Job]) -> None:
        made: set[str] = set()
        for job in flow:
            below = closure(element.edge for element in job.elements)
            assert not any(vertex in causes for vertex, causes in below.items())
            names = {name for e in job.elements for kind, name in e.edge if kind == "entity"}
            foreign = {name for name in names if not name.startswith(f"{job.name}/")}
            assert foreign <= made
            made |= {output for output, _ in dependencies(job.elements)}
