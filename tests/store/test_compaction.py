"""Lookups equal a dict, whatever of the edges is compacted, and after the store is opened again."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater import store as stores
from headwater.query import Store
from headwater.query.edges import Edges
from headwater.store import EmbeddedWriter, StoreReader
from headwater.store.catalog import Catalog
from tests.store.small import batch, flow, reports, rows, stopped
from tests.support import amount

RECORDS = st.integers(0, 12)
RESULT = st.tuples(st.integers(0, 5), st.sets(RECORDS, max_size=5))
BATCH = st.tuples(st.lists(RESULT, max_size=5), st.booleans())


@settings(max_examples=amount(25, 300), deadline=None)
@given(st.lists(BATCH, min_size=1, max_size=6))
def test_lookups_equal_a_dict(batches: list[tuple[list[tuple[int, set[int]]], bool]]) -> None:
    backward: dict[int, set[int]] = {}
    forward: dict[int, set[int]] = defaultdict(set)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        with EmbeddedWriter.open(path) as writer, stores.open(path) as store:
            writer.register(flow())
            for number, (results, compact) in enumerate(batches):
                made = stopped(*((key, number, "v", 1, records) for key, records in results))
                kept = reports(*((key, 0, key) for _, records in results for key in records))
                done = writer.commit(batch(number, made, kept))
                ids = done.result_ids["stopped"].to_pylist()
                for key, (_, records) in zip(ids, results, strict=True):
                    backward[key] = records
                    for record in records:
                        forward[record].add(key)
                if compact:
                    writer.compact()
                check_lists(store, backward)
            check(store, backward, forward)
            writer.compact()
            check(store, backward, forward)
        with stores.open(path) as store:
            check(store, backward, forward)
        with EmbeddedWriter.open(path), stores.open(path) as store:
            check(store, backward, forward)


def check(store: Store, backward: dict[int, set[int]], forward: dict[int, set[int]]) -> None:
    for key, records in backward.items():
        assert rows(store.backward("stopped", key), "id") == [(one,) for one in sorted(records)]
    for record, keys in forward.items():
        assert sorted(rows(store.forward("reports", record), "result_id")) == [
            (one,) for one in sorted(keys)
        ]
    check_lists(store, backward)


def check_lists(store: Store, backward: dict[int, set[int]]) -> None:
    edges = sorted((key, record) for key, records in backward.items() for record in records)
    assert sorted(rows(store.backward("stopped", list(backward)), "result_id", "id")) == edges
    assert sorted(rows(store.backward("stopped"), "result_id", "id")) == edges
    found = rows(store.forward("reports", list(range(-1, 14))), "result_id", "id")
    assert sorted(found) == edges


def test_an_edge_compacted_between_two_reads_is_found_once(tmp_path: Path) -> None:
    """The reader learns how far the runs go, and only then, after a compaction, reads them."""
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow())
        writer.commit(batch(0, stopped((1, 0, "a", 1, [5]))))
        writer.compact()
        writer.commit(batch(1, stopped((2, 0, "a", 1, [5]))))
        plain = StoreReader(tmp_path)

        class Late:
            """A compaction and another batch come after the first query."""

            def query(self, sql: str, params: object = ()) -> object:
                answer = plain.query(sql, params)  # type: ignore[arg-type]
                if "compacted" in sql:
                    writer.compact()
                    writer.commit(batch(2, stopped((3, 0, "a", 1, [5]))))
                return answer

        catalog = Catalog.read(plain.query)
        edges = Edges(Late(), catalog)  # type: ignore[arg-type]
        found = edges.of_records(catalog.source("reports"), (), np.array([5]))
        assert rows(found, "result_id") == [(1,), (2,), (3,)]


def test_the_tail_is_compacted_when_it_is_long(tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path, compact_edges=4) as writer:
        writer.register(flow())
        reader = StoreReader(tmp_path)

        def sorted_edges() -> list[tuple[object, ...]]:
            return rows(reader.query("SELECT source_id, result_id FROM edges_by_record"))

        writer.commit(batch(0, stopped((1, 0, "a", 1, [9, 8, 7]))))
        assert sorted_edges() == []
        writer.commit(batch(1, stopped((2, 0, "a", 1, [3]))))
        assert sorted_edges() == [(3, 2), (7, 1), (8, 1), (9, 1)]
        writer.commit(batch(2, stopped((3, 0, "a", 1, [1, 2, 3]))))
    with EmbeddedWriter.open(tmp_path, compact_edges=4) as writer:
        writer.commit(batch(3, stopped((4, 0, "a", 1, [0]))))
        assert sorted_edges()[4:] == [(0, 4), (1, 3), (2, 3), (3, 3)], "the tail was remembered"
