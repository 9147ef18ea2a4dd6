"""Runs without Spark: results, provenance, errors, time, and going on after any end."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headwater as hw
from headwater import streams
from headwater.errors import RunError
from headwater.mapreduce.journal import Journal
from headwater.mapreduce.outcomes import Outcomes
from headwater.mapreduce.running import start
from headwater.mapreduce.windows import length
from headwater.mapreduce.windows import time as for_time
from headwater.mapreduce.working import Worker
from tests.mapreduce.lab import T0, Lab, Local, expected, lines_of, sliding


def letters(lab: Lab) -> list[dict[str, Any]]:
    folder = lab.store / "mapreduce" / "counts" / "dead-letters"
    files = sorted(folder.iterdir())
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def maps(lab: Lab) -> list[str]:
    return sorted(path.name for path in (lab.store / "mapreduce" / "counts" / "maps").iterdir())


TEXTS = st.text(alphabet="ab \n\r", max_size=20)


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(TEXTS, min_size=1, max_size=6), st.integers(1, 4), st.booleans(), st.data())
def test_random_files_give_what_plain_python_does(
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[str],
    size: int,
    combine: bool,
    data: st.DataObject,
) -> None:
    lab = Lab(tmp_path_factory.mktemp("random"))
    files = [(f"f{n}", lines_of(text)) for n, text in enumerate(texts)]
    # In one run or in two: what is there at a start does not matter.
    cut = data.draw(st.integers(0, len(texts)))
    for some in (range(cut), range(cut, len(texts))):
        for n in some:
            lab.put(f"f{n}", texts[n], n)
        lab.run(window=length(size), combine=combine)
    counts, origins = expected(files, sliding(len(texts), size))
    assert lab.published() == counts
    assert lab.origins() == origins
    with hw.open(lab.store) as store:
        results = store.results("counts").to_pylist()
        assert len(results) == sum(len(of) for of in counts.values())
        reached = {(n, w) for n, of in origins.items() for w, s in of.items() if ("f0", 0) in s}
        if reached:
            forward = store.forward("lines", ("f0", 0)).to_pylist()
            assert {(row["reduce"], row["word"]) for row in forward} == reached
    assert len(maps(lab)) == min(size, len(texts)), "expired outputs are gone"


def test_bad_records_files_and_keys_are_put_aside(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.put("a", "x y\nboom\nx\n", 0)
    lab.put("b.gz", b"no gzip", 1)
    lab.put("c", b"", 2)
    lab.put("d", "y y y\n", 3)

    def careful(key: str, values: list[int]) -> int | None:
        if sum(values) > 3:
            raise OverflowError("too many")
        return None if key == "x" else sum(values)

    seen: list[Any] = []
    run = lab.run(window=length(2), reduce=careful, on_reduce=seen.append)
    # A file that can't be read takes no place in the window; an empty one does.
    assert [info.files for info in seen] == [("a",), ("a", "c"), ("c", "d")]
    assert lab.published() == {0: {"y": 1}, 1: {"y": 1}, 2: {"y": 3}}
    found = letters(lab)
    assert [letter["where"].rpartition("/")[2] for letter in found] == ["a, record 1", "b.gz"]
    assert found[0]["reason"] == "words: ValueError: no boom"
    assert found[0]["event"] == "boom"
    assert "Not a gzipped file" in found[1]["reason"]
    lab.put("e", "y y\n", 4)
    run = lab.run(window=length(2), reduce=careful)
    assert 3 not in lab.published(), "its only key failed"
    assert letters(lab)[-1] == {
        "reason": "careful: OverflowError: too many",
        "where": "reduce 3",
        "event": '["y"]',
    }
    assert (run.state.done, run.state.letters) == (4, 3)
    assert run.dead_letters.is_dir()


def test_time_passes_by_files_and_by_itself(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    for n, second in enumerate((0, 4, 30)):
        lab.put(f"f{n}", f"w{n}", second)
    lab.run(window=for_time("10 s"))  # with once, only files move the time
    assert lab.published() == {0: {"w0": 1}, 1: {"w0": 1, "w1": 1}, 2: {"w1": 1}, 4: {"w2": 1}}
    with hw.open(lab.store) as store:
        found = store.results("counts", where="reduce = 4").to_pylist()
    assert found[0]["event_time"].timestamp() == T0 + 30
    with start(lab.settings(window=for_time("10 s"), once=False, poll=0.05), Local) as run:
        deadline = time.monotonic() + 20
        while run.state.done < 6 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert run.state.done == 6, "the last file has left as well"
    assert run.state.members == ()
    assert maps(lab) == []


def test_files_come_in_one_order_whenever_they_are_mapped(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.put("late", "w0", 10)

    class Broken(Local):
        def map(self, files: Any, outputs: Any) -> Any:
            raise OSError("no space left")

    with pytest.raises(RunError):
        lab.run(Broken, window=for_time("3 s"))
    lab.put("early", "w1", 2)  # the other has been taken already, at 10
    lab.run(window=for_time("3 s"))
    assert lab.published() == {0: {"w0": 1}, 1: {"w0": 1, "w1": 1}}


def test_shutdown_ends_it_after_what_came_before(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.put("a", "x", 0)
    lab.put("c", "x", 9)
    lab.put("shutdown.txt", "", 5)
    lab.run(once=False)
    assert lab.published() == {0: {"x": 1}}
    lab.run(once=False)  # it is still there
    (lab.input / "shutdown.txt").unlink()
    lab.run()
    assert lab.published() == {0: {"x": 1}, 1: {"x": 2}}


def test_a_file_that_grows_after_all_is_mapped_anew(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    path = lab.put("a", "x\n", 0)

    class Growing(Local):
        grown = 0

        def map(self, files: Any, outputs: Any) -> Any:
            made = super().map(files, outputs)
            if not Growing.grown:
                Growing.grown = 1
                path.write_text("x\nx\n")
            return made

    lab.run(Growing)
    assert lab.published() == {0: {"x": 2}}


class Killed(BaseException):
    """What ends a run as a kill would, but for the lock."""


def test_ended_anywhere_it_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs end before or after the n-th write of any kind, again and again."""
    lab, chance = Lab(tmp_path), random.Random(5)
    texts = [f"a b{n}\nboom\n" for n in range(5)]
    left = [0]
    for owner, name in (
        (Journal, "_write"),
        (Outcomes, "commit"),
        (Outcomes, "publish"),
        (Worker, "_collect"),
        (Worker, "_write_letters"),
        (Local, "map"),
        (Local, "reduce"),
    ):
        monkeypatch.setattr(owner, name, _fused(getattr(owner, name), left))
    starts = 0
    while True:
        starts += 1
        assert starts < 200
        if starts <= len(texts):
            lab.put(f"f{starts - 1}", texts[starts - 1], starts)
        left[0] = chance.randint(2, 9)
        try:
            run = lab.run()
        except (RunError, Killed):
            continue
        if starts >= len(texts):
            break
    assert starts > 10, "it was ended often enough to tell"
    counts, origins = expected([(f"f{n}", lines_of(t)) for n, t in enumerate(texts)], sliding(5, 3))
    assert lab.published() == counts
    assert lab.origins() == origins
    assert len(letters(lab)) == 5
    assert (run.state.done, run.state.letters) == (5, 5)


def _fused(call: Any, left: list[int]) -> Any:
    def fused(*args: Any, **more: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        done = call(*args, **more)
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        return done

    return fused


def test_killed_for_real_it_goes_on(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    texts = [f"a b{n}\n" for n in range(4)]
    for n, text in enumerate(texts):
        lab.put(f"f{n}", text, n)
    for point in ("mapped", "committed", "published"):
        command = [sys.executable, "-m", "tests.mapreduce.job", str(tmp_path), point]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr[-2_000:]
    lab.run()
    counts, origins = expected([(f"f{n}", lines_of(t)) for n, t in enumerate(texts)], sliding(4, 3))
    assert lab.published() == counts
    assert lab.origins() == origins


def test_what_does_not_belong_together_is_refused(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.put("a", "x", 0)
    with (
        start(lab.settings(once=False), Local),
        pytest.raises(RunError, match="another process runs"),
    ):
        lab.run()
    lab.run()
    with pytest.raises(RunError, match="of other settings"):
        lab.run(window=length(2))
    with pytest.raises(RunError, match="not of this map-reduce"):
        lab.run(state=tmp_path / "other")
    with pytest.raises(RunError, match="of another state folder"):
        lab.run(state=tmp_path / "new", streams=tmp_path / "streams2")
    with pytest.raises(RunError, match="not the same store"):
        lab.run(store=tmp_path / "store2", state=lab.store / "mapreduce" / "counts")
    moved = Lab(tmp_path / "moved")
    with pytest.raises(RunError, match="is of files in"):
        moved.run(state=lab.store / "mapreduce" / "counts")


def test_an_error_of_the_engine_is_told_and_the_rest_is_safe(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.put("a", "x", 0)

    class Broken(Local):
        def reduce(self, number: int, outputs: Any) -> Any:
            raise OSError("no space left")

    with pytest.raises(RunError, match="map-reduce 'counts' failed: no space left"):
        lab.run(Broken)
    lab.run()
    assert lab.published() == {0: {"x": 1}}
    assert streams.open(lab.streams).describe("counts").events == 1
    assert os.listdir(lab.input) == ["a"], "files are left where they are"
