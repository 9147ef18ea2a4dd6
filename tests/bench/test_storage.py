"""SAF's storage experiment at a small size."""

from __future__ import annotations

import numpy as np

from headwater.bench import streams
from headwater.bench.storage import KEY_BYTES, Chain


def test_the_papers_formulas() -> None:
    chain = Chain(events=10, payload=100, components=3)
    assert chain.every == 3 * 10 * (KEY_BYTES + 100)
    assert chain.first == 10 * (KEY_BYTES + 100) + 2 * 10 * KEY_BYTES


def test_each_step_turns_the_contents_by_a_byte() -> None:
    ids = np.arange(3, dtype=np.int64)
    before, after = (streams.contents(ids, 4, step).to_pylist() for step in (0, 1))
    assert after == [content[1:] + content[:1] for content in before]
