"""Blocks: ids of vertices, equal edges as one, functions and names united, and bytes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import HeadwaterError
from headwater.reduce.blocks import MOST_FUNCTIONS, Block, Residue, is_activity, vertex_ids
from headwater.reduce.contraction import contract
from headwater.testing.prov_graphs import Element, block, vertex_id
from headwater.testing.prov_strategies import jobs
from headwater.times import NO_TIME
from tests.support import amount

COLUMNS = ("source", "destination", "time", "functions", "derived", "kept", "ids")


def rows(one: Block) -> list[tuple[object, ...]]:
    """The edges with the names of their functions, which blocks may number differently."""
    return sorted(
        (source, destination, time, derived, functions_of(bits, one.function_names))
        for source, destination, time, bits, derived in zip(
            one.source.tolist(),
            one.destination.tolist(),
            one.time.tolist(),
            one.functions.tolist(),
            one.derived.tolist(),
            strict=True,
        )
    )


def functions_of(bits: int, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(name for bit, name in enumerate(names) if bits >> bit & 1))


def assert_same(one: Block, other: Block) -> None:
    """The same to the last bit, order and numbering included."""
    for name in COLUMNS:
        mine, its = getattr(one, name), getattr(other, name)
        assert mine.dtype == its.dtype
        assert mine.tolist() == its.tolist()
    assert one.names.equals(other.names)
    assert (one.function_names, one.elements) == (other.function_names, other.elements)


class TestIds:
    def test_the_lowest_bit_is_the_kind_and_the_rest_is_the_hash(self) -> None:
        names = pa.array(["a", "é", "", "a"])
        for kind, seed, bit in (("entity", 42, 0), ("activity", 43, 1)):
            ids = vertex_ids(names, kind)  # type: ignore[arg-type]
            assert ids.dtype == np.int64
            for name, found in zip(names.to_pylist(), ids.tolist(), strict=True):
                whole = xxhash.xxh64_intdigest(name.encode(), seed=seed)
                assert found % (1 << 64) == (whole & ~1) | bit
            assert is_activity(ids).tolist() == [bool(bit)] * 4

    def test_all_forms_of_a_column_give_the_same_ids(self) -> None:
        names = ["x", "y", "x", "z"]
        plain = pa.array(names)
        expected = vertex_ids(plain, "entity").tolist()
        forms = [
            plain.dictionary_encode(),
            pa.chunked_array([names[:1], names[1:]]),
            pa.chunked_array([names[:1], names[1:]]).dictionary_encode(),
            pa.array(["out", *names]).slice(1),
            pa.array(names, pa.large_string()),
        ]
        assert [vertex_ids(form, "entity").tolist() for form in forms] == [expected] * len(forms)

    def test_no_names(self) -> None:
        assert vertex_ids(pa.array([], pa.string()), "activity").tolist() == []


class TestMerging:
    def test_equal_edges_become_one(self) -> None:
        first = Element("used", "m", "in", "map", seconds=5)
        again = Element("used", "m", "in", "again", seconds=3)
        untimed = Element("used", "m", "in", None)
        merged = Block.merged([block([first]), block([again]), block([untimed])])
        assert rows(merged) == [
            (*(vertex_id(v) for v in first.edge), first.micros, False, ("again", "map"))
        ]
        assert merged.elements == 3

    def test_an_edge_is_derived_only_if_it_was_never_told(self) -> None:
        told = block([Element("wasDerivedFrom", "b", "a")])
        found = contract(
            block([Element("wasDerivedFrom", "b", "x"), Element("wasDerivedFrom", "x", "a")])
        ).hot
        assert found.derived.tolist() == [True]
        assert Block.merged([found, told]).derived.tolist() == [False]
        assert Block.merged([found, found]).derived.tolist() == [True]

    def test_an_untold_time_stays_untold(self) -> None:
        one = block([Element("used", "m", "in")])
        assert Block.merged([one, one]).time.tolist() == [NO_TIME]

    def test_functions_beyond_the_last_bit_are_left_out(self) -> None:
        many = [Element("used", f"m{n}", "in", f"f{n}") for n in range(MOST_FUNCTIONS + 2)]
        merged = Block.merged([block([one]) for one in many])
        assert merged.function_names == tuple(f"f{n}" for n in range(MOST_FUNCTIONS))
        named = {functions for *_, functions in rows(merged)}
        assert named == {(), *((f"f{n}",) for n in range(MOST_FUNCTIONS))}
        assert (merged.functions >= 0).all()

    def test_one_id_of_two_names_is_refused(self) -> None:
        one = block([Element("used", "m", "in")])
        names = ["other" if name == "in" else name for name in one.names.to_pylist()]
        other = Block(**{**parts(one), "names": pa.array(names)})
        with pytest.raises(HeadwaterError, match="the names 'in' and 'other' have one hash"):
            Block.merged([one, one, other])

    def test_nothing(self) -> None:
        assert_same(Block.merged([]), Block.empty())
        assert_same(Block.merged([Block.empty(), Block.empty()]), Block.empty())

    @settings(max_examples=amount(60, 600), deadline=None)
    @given(jobs(), st.lists(st.integers(0, 60), max_size=3))
    def test_parts_in_any_cut_are_the_whole(self, told: list[Element], cuts: list[int]) -> None:
        places = [0, *sorted(min(cut, len(told)) for cut in cuts), len(told)]
        parts = [block(told[a:b]) for a, b in pairwise(places)]
        whole, merged = Block.merged([block(told)]), Block.merged(reversed(parts))
        assert rows(merged) == rows(whole)
        assert len({row[:2] for row in rows(merged)}) == len(merged)
        assert merged.ids.tolist() == whole.ids.tolist()
        assert merged.names.equals(whole.names)
        assert merged.kept.tolist() == whole.kept.tolist()
        assert merged.elements == len(told)


class TestBytes:
    @settings(max_examples=amount(60, 600), deadline=None)
    @given(jobs())
    def test_what_is_written_is_read(self, told: list[Element]) -> None:
        one = block(told)
        assert_same(Block.from_bytes(one.to_bytes()), one)
        residue = contract(one).residue
        read = Residue.from_bytes(residue.to_bytes())
        assert read.vertex.tolist() == residue.vertex.tolist()
        assert_same(read.edges, residue.edges)

    def test_nothing(self) -> None:
        assert_same(Block.from_bytes(Block.empty().to_bytes()), Block.empty())
        assert len(Residue.from_bytes(Residue.empty().to_bytes())) == 0

    def test_the_same_block_gives_the_same_bytes(self) -> None:
        one = block([Element("used", "m", "in", "map", seconds=1)])
        assert one.to_bytes() == Block.from_bytes(one.to_bytes()).to_bytes()


def parts(one: Block) -> dict[str, object]:
    return {name: getattr(one, name) for name in Block.__dataclass_fields__}
