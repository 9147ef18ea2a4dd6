"""The store answers for results whose provenance was not stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import headwater as hw
from tests.mapreduce.lab import Lab, expected, lines_of, sliding

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
TEXTS = ["a b a\n\nc", "b b\n", "", "d a\nc c c\n"]


def test_backward_and_forward_without_stored_edges(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    for n, text in enumerate(TEXTS):
        lab.put(f"f{n}", text, n)
    hw.mapreduce(
        lab.input,
        map="words",
        reduce="sum",
        window=hw.length(2),
        store=lab.store,
        streams=lab.streams,
        out="counts",
        capture="ancestors",
        once=True,
    ).wait()
    counts, origins = expected([(f"f{n}", lines_of(t)) for n, t in enumerate(TEXTS)], sliding(4, 2))
    assert lab.published() == counts
    assert lab.origins() == origins
    with hw.open(lab.store) as store:
        forward = store.forward("lines", ("f1", 0)).to_pylist()
        assert {(r["reduce"], r["word"], r["n"]) for r in forward} == {(1, "b", 3), (2, "b", 2)}
        [nothing] = store.forward("lines", ("f0", 1)).to_pylist()
        assert nothing["result_id"] is None
        [mine] = store.results("counts", where="reduce = 1 AND word = 'c'").to_pylist()
        [line] = store.backward("counts", mine["result_id"]).to_pylist()
        assert (line["file"], line["row"], line["value"]) == ("f0", 2, "c")
        assert store.backward("counts", mine["result_id"], columns=False).num_rows == 1
