"""SAF's storage experiment at a small size."""

from __future__ import annotations

from json import loads
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from headwater.bench import storage, streams
from headwater.bench.storage import EVERY, FIRST, KEY_BYTES, Chain
from headwater.cli import app


def test_the_papers_formulas() -> None:
    chain = Chain(events=10, payload=100, components=3)
    assert chain.every == 3 * 10 * (KEY_BYTES + 100)
    assert chain.first == 10 * (KEY_BYTES + 100) + 2 * 10 * KEY_BYTES


def test_each_step_turns_the_contents_by_a_byte() -> None:
    ids = np.arange(3, dtype=np.int64)
    before, after = (streams.contents(ids, 4, step).to_pylist() for step in (0, 1))
    assert after == [content[1:] + content[:1] for content in before]


def test_every_way_is_weighed(spark, tmp_path: Path) -> None:
    table = storage.measure(
        spark,
        events=2_000,
        payloads=[1_024],
        components=[3],
        modes=("none", "eager"),
        folder=tmp_path,
    )
    sizes = {row["stored"]: row["bytes"] for row in table.rows}
    assert list(sizes) == [
        EVERY,
        FIRST,
        "none, results whole",
        "eager, results whole",
        "none, results keys",
        "eager, results keys",
        "none, results keys, inputs kept",
        "eager, results keys, inputs kept",
    ]
    chain = Chain(2_000, 1_024, 3)
    assert sizes[EVERY] == pytest.approx(chain.every, rel=0.3)
    assert sizes[EVERY] > sizes[FIRST] > 2_000 * 1_024
    assert sizes["eager, results whole"] > 2_000 * 1_024
    for mode in ("none", "eager"):
        keys = sizes[f"{mode}, results keys"]
        assert keys < sizes[f"{mode}, results whole"]
        assert keys < sizes[f"{mode}, results keys, inputs kept"]
    assert not any(tmp_path.iterdir())


def test_command(spark) -> None:
    args = "--events 1000 --payload 100 --components 2 --mode none --json".split()
    done = CliRunner().invoke(app, ["bench", "storage", *args])
    assert done.exit_code == 0
    report = loads(done.stdout)
    assert [row["stored"] for row in report["rows"]][:2] == [EVERY, FIRST]
    assert report["machine"]["duckdb"]
