"""Provenance sets as edges, and repeated ids, against plain Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.store.occurrences import mixed, numbered, ranks
from headwater.store.sets import pairs

# Few values, so that they repeat; some far apart, so that arithmetic overflows.
IDS = st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1, 2**62])


@settings(deadline=None)
@given(st.lists(st.none() | st.lists(st.none() | IDS, max_size=6), max_size=8), st.randoms())
def test_pairs_are_the_sets(lists: list[list[int | None] | None], random: object) -> None:
    result_ids = list(range(len(lists)))
    random.shuffle(result_ids)  # type: ignore[attr-defined]
    half = len(lists) // 2
    chunks = [pa.array(part, pa.list_(pa.int64())) for part in (lists[:half], lists[half:])]
    results, records = pairs(np.array(result_ids, np.int64), pa.chunked_array(chunks))
    expected = {
        (result_id, record)
        for result_id, one in zip(result_ids, lists, strict=True)
        for record in one or ()
        if record is not None
    }
    found = list(zip(results.tolist(), records.tolist(), strict=True))
    assert len(found) == len(expected)
    assert set(found) == expected
    assert sorted(results.tolist()) == results.tolist()


@settings(deadline=None)
@given(st.lists(IDS))
def test_ranks_count_earlier_ones(ids: list[int]) -> None:
    expected = [ids[:place].count(key) for place, key in enumerate(ids)]
    assert ranks(np.array(ids, np.int64)).tolist() == expected


@settings(deadline=None)
@given(st.lists(st.lists(IDS, max_size=6), max_size=5))
def test_numbers_go_on_over_batches(batches: list[list[int]]) -> None:
    stored: Counter[int] = Counter()
    final: list[int] = []
    for ids in batches:
        before = Counter(stored)

        def counted(asked: np.ndarray, before: Counter[int] = before) -> tuple[np.ndarray, ...]:
            known = [key for key in set(asked.tolist()) if key in before]
            return np.array(known, np.int64), np.array([before[key] for key in known], np.int64)

        got, n = numbered(np.array(ids, np.int64), counted)  # type: ignore[arg-type]
        for key, number in zip(ids, n.tolist(), strict=True):
            stored[key] += 1
            assert number >= 1
        final += got.tolist()
    assert len(set(final)) == len(final)
    every = [key for ids in batches for key in ids]
    for key in every:
        n = np.arange(2, every.count(key) + 1)
        assert {key, *mixed(np.full(len(n), key), n).tolist()} <= set(final)


def test_the_mix_is_splitmix64() -> None:
    """The first outputs of the generator seeded with 0, as its authors publish them."""
    first = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    got = mixed(np.zeros(3, np.int64), np.array([1, 2, 3])).astype(np.uint64)
    assert got.tolist() == first
