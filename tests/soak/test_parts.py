"""The parts of a soak: what it plans, breaks and publishes, how it judges and reports."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headwater.compose import Composition
from tests.soak import corruption, hostile
from tests.soak.clock import Clock
from tests.soak.disk import fill, free, small_disk
from tests.soak.faults import Outcome
from tests.soak.flows import CHANGED, FLOWS, changed
from tests.soak.publishing import Supply, grid, insist, traffic
from tests.soak.report import BEGIN, END, Report, write
from tests.soak.schedule import EVERY, KINDS, schedule


def test_a_schedule_follows_from_its_seed() -> None:
    assert schedule(3, 900.0) == schedule(3, 900.0)
    assert schedule(3, 900.0) != schedule(4, 900.0)


def test_each_round_has_every_kind_once() -> None:
    faults = schedule(5, 1_800.0)
    for first in range(0, len(faults) - len(KINDS), len(KINDS)):
        assert Counter(f.kind for f in faults[first : first + len(KINDS)]) == Counter(KINDS)
    assert all(EVERY[0] <= fault.after <= EVERY[1] for fault in faults)


@pytest.mark.parametrize("made", [traffic, grid])
def test_chunks_follow_from_their_numbers(made: type[Supply]) -> None:
    supply = made(7)
    laps = len(supply.rows) // supply.chunk
    ids = [row[supply.id] for n in range(laps + 3) for row in supply.events(n)]
    assert sorted(ids) == list(range(len(ids))), "each id once, over two laps"
    assert supply.events(4) == supply.events(4)
    ends = [max(row["ts"] for row in supply.events(n)) for n in range(laps + 3)]
    assert ends == sorted(ends), "time goes on"
    assert supply.last(5)["ts"] > ends[5]
    before = supply.events(2)
    supply.jumps[2] = 90.0
    after = supply.events(2)
    assert {(b["ts"] - a["ts"]).total_seconds() for a, b in zip(before, after, strict=True)} == {90}


def test_what_is_not_acknowledged_is_sent_again() -> None:
    answers = iter([ConnectionResetError(), AssertionError("POST /x: 503 busy"), "done"])

    def send() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    troubles: dict[str, int] = {}
    assert insist(send, troubles) == "done"
    assert troubles == {"ConnectionResetError": 1, "status 503": 1}


@pytest.mark.parametrize("name", CHANGED)
def test_changes_are_flows(name: str) -> None:
    chance, flow = random.Random(1), Composition.parse(FLOWS[name])
    texts = set()
    for turn in range(1, 12):
        flow = changed(flow, turn, chance)
        flow.plan()
        texts.add(flow.to_yaml())
    assert len(texts) > 8


def test_hostile_events_have_ids_of_their_own() -> None:
    first, second = (hostile.attacks(n, random.Random(n)) for n in (0, 1_000))
    ids = [event["n"] for attack in (*first, *second) for event in attack.events]
    assert len(ids) == len(set(ids)) > 20
    assert any(not attack.admissible for attack in first)
    assert any(attack.may_be_cut_off for attack in first)


@pytest.mark.parametrize("how", corruption.DAMAGES)
def test_damage_does_not_reach_what_is_linked(tmp_path: Path, how: str) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(bytes(range(200)))
    os.link(file, link)
    corruption.damage(file, how, random.Random(2))
    assert file.read_bytes() != link.read_bytes() == bytes(range(200))
    assert file.stat().st_mtime_ns == link.stat().st_mtime_ns


def test_what_was_kept_is_put_back_with_its_links(tmp_path: Path) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy"
    for name in corruption.KEPT:
        (home / name).mkdir(parents=True)
    (home / "flows" / "a").write_text("a")
    os.link(home / "flows" / "a", home / "streams" / "b")
    corruption.keep(home, copy)
    (home / "flows" / "a").unlink()
    (home / "streams" / "new").write_text("of a run that is not to be")
    corruption.put_back(home, copy)
    assert sorted(p.name for p in home.rglob("*") if p.is_file()) == ["a", "b"]
    assert (home / "flows" / "a").samefile(home / "streams" / "b")


@pytest.mark.parametrize(
    ("message", "clear"),
    [
        ("Error: the store /x is damaged; put a copy back, or use another", True),
        ("Traceback (most recent call last)\n  …\nValueError: x; use y", False),
        ("something is wrong", False),
        ("", False),
    ],
)
def test_messages_are_judged(message: str, clear: bool) -> None:
    assert (corruption.unclear(message) is None) is clear


def test_a_small_disk_fills_up(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "2m") as why:
        if why is not None:
            pytest.skip(f"no disk can be mounted here: {why}")
        ballast = fill(tmp_path / "disk")
        assert free(tmp_path / "disk") == 0
        with pytest.raises(OSError, match="No space left"):
            (tmp_path / "disk" / "more").write_bytes(b"x" * 8192)
        ballast.unlink()
        (tmp_path / "disk" / "more").write_bytes(b"x" * 8192)


def test_the_clock_of_a_process_jumps(tmp_path: Path) -> None:
    clock = Clock(tmp_path)
    if clock.why_not is not None:
        pytest.skip(clock.why_not)
    lines = (
        "import queue, sys, time",
        "for line in sys.stdin:",
        "    began = time.monotonic()",
        "    time.sleep(0.05)",
        "    try: queue.Queue().get(timeout=0.05)",
        "    except queue.Empty: pass",
        "    print(time.time(), time.monotonic() - began, flush=True)",
    )
    with subprocess.Popen(
        [sys.executable, "-c", "\n".join(lines)],
        env={**os.environ, **clock.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for off in (0, 86_400, -86_400, 0):
            clock.jump(off)
            print(file=process.stdin, flush=True)
            now, took = map(float, process.stdout.readline().split())
            assert abs(now - time.time() - off) < 5
            assert 0.1 <= took < 5, "time itself goes on"
        process.stdin.close()


def test_a_report_replaces_the_one_before(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    report = Report(1, 30.0, datetime(2026, 1, 1, tzinfo=UTC), 1_800.0)
    report.outcomes.append(Outcome("full disk", "for 3 s", 12.0))
    report.checked["edges"] = 1_234
    write(report, page)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| full disk | 1 | 12 | for 3 s |" in text
    assert "1,234" in text
    assert "passed" in text
    report.wrong.append("an <edge> | too many at /home/me/soak/disk/a.arrow of flows/store")
    write(report, page)
    assert "1 findings" in page.read_text()
    assert "an &lt;edge> \\| too many at …/a.arrow of flows/store" in page.read_text()
