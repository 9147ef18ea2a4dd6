"""Hot changes at any moment, `kill -9` among them: each event has its results exactly once."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

import headwater as hw
from tests.restart.soaking import EVERY, WINDOW, Soak, soak, turn_of
from tests.support import amount


@pytest.mark.parametrize(
    ("changes", "kills", "seed"),
    [(amount(4, 7), amount(1, 2), 3), pytest.param(30, 6, 11, marks=pytest.mark.long)],
)
def test_each_event_has_its_results_once(
    tmp_path: Path, changes: int, kills: int, seed: int
) -> None:
    made = soak(tmp_path, changes=changes, kills=kills, seed=seed)
    count = made.published
    try:
        made.wait_for("out", count + 1)
        made.wait_for("summed", -(-count // WINDOW))
        made.wait_for("done", len(range(0, count, EVERY)))
    finally:
        made.stop()
    far = count + 10 * WINDOW
    assert Counter(event["n"] for event in events(made, "out")) == Counter([*range(count), far])
    done = Counter(event["n"] for event in events(made, "done"))
    assert done == Counter([n for n in [*range(count), far] if n % EVERY == 0])
    windows = {
        first: [n for n in range(first, first + WINDOW) if n < count]
        for first in range(0, count, WINDOW)
    }
    summed = {_first(event): event for event in events(made, "summed")}
    assert len(summed) == len(events(made, "summed")), "no window twice"
    assert {first: (event["total"], event["c"]) for first, event in summed.items()} == {
        first: (sum(n % 97 for n in held), len(held)) for first, held in windows.items()
    }
    assert_provenance(made, summed, windows)


def assert_provenance(made: Soak, summed: dict[int, dict], windows: dict[int, list[int]]) -> None:
    """Results of every version lead back to just the events that they came from, and forward."""
    store = hw.open(made.flows / "store")
    chance = random.Random(made.seed)
    out = events(made, "out")
    for event in chance.sample(out, 25):
        back = store.backward(entity=f"hw:streams/out/{event['event_id']}")
        assert back["id"].to_pylist() == [f"hw:streams/nums/{event['n']}"]
    for first, held in windows.items():
        back = store.backward(entity=f"hw:streams/summed/{summed[first]['event_id']}")
        assert set(back["id"].to_pylist()) == {f"hw:streams/nums/{n}" for n in held}
    for event in events(made, "done"):
        back = store.backward(entity=f"hw:streams/done/{event['event_id']}")
        assert back["id"].to_pylist() == [f"hw:streams/nums/{event['n']}"]
    ids = {event["n"]: event["event_id"] for event in out}
    for n in chance.sample(range(made.published), 10):
        reached = store.forward(entity=f"hw:streams/nums/{n}").to_pylist()
        ends = {row["id"] for row in reached}
        wanted = {f"hw:streams/out/{ids[n]}"}
        wanted.add(f"hw:streams/summed/{summed[n - n % WINDOW]['event_id']}")
        extra = {end for end in ends if end.startswith("hw:streams/extras/")}
        done = {end for end in ends if end.startswith("hw:streams/done/")}
        assert len(done) == (n % EVERY == 0)
        assert ends - extra - done == wanted
    # Each result says which version made it, and several versions made some.
    versions = {row["job"] for row in store.backward(entity=f"hw:streams/out/{ids[0]}").to_pylist()}
    assert versions == {"soak.all.v1"}
    assert turn_of(made) > 1


def events(made: Soak, stream: str) -> list[dict]:
    found: list[dict] = made.streams.table(stream).to_pylist()
    return found


def _first(event: dict) -> int:
    from tests.restart.soaking import BEGIN

    return round((event["window"]["start"] - BEGIN).total_seconds())
