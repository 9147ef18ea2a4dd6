"""The synthetic flow: each result has the asked number of records and shares the asked part."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

import headwater as hw
from headwater.errors import HeadwaterError
from headwater.examples import synthetic
from tests.examples.windows import SECOND, Sets, records, told
from tests.support.streams import Lab, Told


def expected(folder: Path, size: int, slide: int, keys: int) -> Sets:
    """Every window of so many records of a key that ends by the last record's time."""
    rows = records(folder)
    over = max(row["at"] for row in rows)
    found: Sets = {}
    for key in range(keys):
        own = sorted((row for row in rows if row["key"] == key), key=lambda row: row["at"])
        for first in range(0, len(own) - size + 1, slide):
            chosen = own[first : first + size]
            window = (float(first), float(first + size))
            if window[1] * SECOND <= over:
                total = sum(row["value"] for row in chosen)
                found[key, window, size, total] = {row["id"] for row in chosen}
    return found


def check(found: Told, size: int, shared: int) -> None:
    by_key: dict[int, list[tuple[float, set[int]]]] = {}
    for (key, window, *_), sets in found:
        by_key.setdefault(key, []).append((window[0], sets["records"]))
    for windows in by_key.values():
        inside = [ids for _, ids in sorted(windows, key=lambda window: window[0])]
        assert {len(ids) for ids in inside} == {size}
        assert {len(a & b) for a, b in pairwise(inside)} == {shared}


@pytest.mark.spark
def test_size_and_overlap(spark, lab: Lab) -> None:
    """Flows of two sizes over one folder, which has as many results as asked of the first."""
    data = lab.home / "data"
    synthetic.generate(data, results=30, size=20, overlap=75, keys=3, files=4)
    options = {"maxFilesPerTrigger": 1}
    for size, overlap, shared in [(20, 75, 15), (7, 0, 0)]:
        flow = hw.Flow(f"synthetic-{size}", spark)
        synthetic.sinks(flow, data, size=size, overlap=overlap, options=options)
        found = lab.tell(flow)["windows"]
        assert found == told("records", expected(data, size, size - shared, keys=3))
        check(found, size, shared)
        assert size != 20 or len(found) == 30


@pytest.mark.parametrize(
    ("size", "overlap", "slide"), [(50, 25, 38), (100, 90, 10), (10, 0, 10), (1, 99, 1), (3, 99, 1)]
)
def test_the_slide_leaves_what_is_shared(size: int, overlap: int, slide: int) -> None:
    assert synthetic.slide(size, overlap) == slide


@pytest.mark.parametrize("results", [1, 8, 9, 100])
def test_there_are_as_many_results_as_asked(tmp_path: Path, results: int) -> None:
    synthetic.generate(tmp_path, results=results, size=10, overlap=50, files=1)
    found = expected(tmp_path, 10, 5, keys=synthetic.KEYS)
    assert results <= len(found) < results + synthetic.KEYS


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"results": 5, "size": 0}, "size=0 is not a number of records"),
        ({"results": 5, "overlap": 100}, "overlap=100 is not a percentage from 0 to 99"),
        ({"results": 0}, "results=0 is not a number of results"),
        ({"keys": 0}, "keys=0 is not a number of keys"),
    ],
)
def test_bad_parameters_are_named(tmp_path: Path, parameters: dict, message: str) -> None:
    with pytest.raises(HeadwaterError, match=message):
        synthetic.generate(tmp_path, **parameters)
