"""Which local reducer gets an edge: all of an execution together, whatever the partitioning."""

from __future__ import annotations

import json
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.reduce import partitioning
from headwater.reduce.blocks import Block, is_activity
from headwater.reduce.parsing import Parsed, parse
from headwater.reduce.partitioning import PARTITIONS, buckets_of, by_activity, split
from headwater.reduce.planning import bucket_keys, murmur3
from headwater.testing.prov_graphs import Element, block
from headwater.testing.prov_strategies import jobs


def parsed(elements: list[Element]) -> Parsed:
    found = parse("\n".join(json.dumps(e.to_json()) for e in elements).encode(), "job")
    assert found.edges.num_rows == len(elements)
    return found


def edges(*executions: tuple[str, str | None, str | None]) -> Parsed:
    """One `used` edge for each execution, function and node."""
    return parsed([Element("used", e, "in", f, e, n) for e, f, n in executions])


@settings(max_examples=60, deadline=None)
@given(jobs(), st.sampled_from(PARTITIONS), st.integers(1, 7))
def test_an_execution_is_in_one_bucket(told: list[Element], by: str, number: int) -> None:
    found = parsed(told)
    buckets = buckets_of(found.edges, by, number)
    assert set(buckets.tolist()) <= set(range(number))
    where = defaultdict(set)
    for execution, bucket in zip(found.edges["execution"].to_pylist(), buckets, strict=True):
        where[execution].add(int(bucket))
    assert all(len(found) == 1 for found in where.values())


@settings(max_examples=60, deadline=None)
@given(jobs(), st.sampled_from(PARTITIONS), st.integers(1, 4), st.integers(1, 9))
def test_blocks_have_every_edge_once_in_told_order(
    told: list[Element], by: str, number: int, largest: int
) -> None:
    found = parsed(told)
    buckets = buckets_of(found.edges, by, number)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitioning, "LARGEST", largest)
        blocks = list(split(found, buckets, functions=True))
    assert all(0 < len(one) == one.elements <= largest for _, one in blocks)
    for bucket in range(number):
        mine = [one for at, one in blocks if at == bucket]
        expected = [e for e, at in zip(told, buckets, strict=True) if at == bucket]
        assert readable(Block.joined(mine)) == readable(block(expected)) if mine else not expected
    for _, one in blocks:
        vertices = np.unique([one.source, one.destination])
        assert one.ids.tolist() == vertices.tolist()
        assert set(one.kept.tolist()) == set(block(told).kept.tolist()) & set(vertices.tolist())


def readable(told: Block) -> list[tuple[str, str, int, set[str]]]:
    names = dict(zip(told.ids.tolist(), told.names.to_pylist(), strict=True))
    return [
        (names[s], names[d], t, {f for bit, f in enumerate(told.function_names) if bits >> bit & 1})
        for s, d, t, bits in zip(
            told.source.tolist(),
            told.destination.tolist(),
            told.time.tolist(),
            told.functions.tolist(),
            strict=True,
        )
    ]


def test_horizontal_goes_by_function_and_vertical_by_node() -> None:
    executions = [(f"e{n}", f"f{n % 5}", f"n{n % 7}") for n in range(200)]
    found = edges(*executions)
    for by, place in (("horizontal", 1), ("vertical", 2)):
        buckets = buckets_of(found.edges, by, 4)
        where = defaultdict(set)
        for execution, bucket in zip(executions, buckets, strict=True):
            where[execution[place]].add(int(bucket))
        assert all(len(buckets) == 1 for buckets in where.values())
        assert len(set().union(*where.values())) > 1
    spread = np.bincount(buckets_of(found.edges, "random", 4), minlength=4)
    assert spread.min() > 25


def test_without_a_node_executions_are_spread() -> None:
    found = edges(*((f"e{n}", None, None) for n in range(200)))
    for by in PARTITIONS:
        assert np.bincount(buckets_of(found.edges, by, 4), minlength=4).min() > 25


def test_one_edge_tells_the_node_for_its_execution() -> None:
    told = [Element("used", "e", "in", None, "e", None)]
    told += [Element("used", "e", f"in-{n}", None, "e", "n7") for n in range(3)]
    told += [Element("used", "e", "in-x", None, "e", "n8")]
    alone = buckets_of(edges(("e", None, "n7")).edges, "vertical", 1_000)
    assert set(buckets_of(parsed(told).edges, "vertical", 1_000)) == set(alone)


def test_by_activity_does_not_care_what_elements_say() -> None:
    told = [
        Element("used", "a", "in", "f", "one", "n1"),
        Element("used", "a", "x", "g", "two", "n2"),
    ]
    told += [Element("wasGeneratedBy", "out", "a", None, None, None)]
    found = parsed(told)
    assert is_activity(found.ids).sum() == 1
    assert len(set(by_activity(found.edges, 1_000))) == 1


def test_blocks_without_functions_have_none() -> None:
    [(_, one)] = split(edges(("e", "f", "n")), np.zeros(1, np.int64), functions=False)
    assert (one.function_names, one.functions.tolist()) == ((), [0])


def test_more_functions_than_bits() -> None:
    found = edges(*((f"e{n}", f"f{n}", None) for n in range(70)))
    [(_, one)] = split(found, np.zeros(70, np.int64), functions=True)
    assert len(one.function_names) == 63
    assert one.functions.tolist() == [1 << n if n < 63 else 0 for n in range(70)]


@pytest.mark.parametrize(("number", "shuffles"), [(1, 1), (2, 2), (5, 2), (8, 4), (7, 3)])
def test_keys_of_buckets_are_spread_over_tasks(number: int, shuffles: int) -> None:
    keys = bucket_keys(number, shuffles)
    assert len(set(keys)) == number
    tasks = [murmur3(key) % shuffles for key in keys]
    assert tasks == [bucket % shuffles for bucket in range(number)]
