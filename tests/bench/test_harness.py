"""Rounds, medians, paired ratios and goals, without Spark."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence

import pytest

from headwater.bench.harness import Case, Outcome, Sample, compare, same_results
from headwater.bench.meter import Meter, Usage
from headwater.bench.paired import Interval, interval
from headwater.bench.report import RATES, Table, goal
from headwater.errors import HeadwaterError


def sample(seconds: float, results: int = 10) -> Sample:
    return Sample({"generation": Usage(seconds, 2 * seconds, 1 << 20)}, results)


def outcome(**seconds: Sequence[float]) -> Outcome:
    case = Case({"window": 10}, 1_000, dict.fromkeys(seconds, lambda meter: sample(1)))
    return Outcome(case, {mode: [sample(s) for s in each] for mode, each in seconds.items()})


def test_medians_and_paired_ratios() -> None:
    seen = outcome(none=[10, 5, 8], eager=[20, 10, 10])
    assert (seen.rate("none"), seen.rate("eager")) == (125, 100)
    assert seen.ratio("eager") == pytest.approx(0.8)
    assert seen.ratios("eager") == pytest.approx([0.5, 0.5, 0.8])
    assert seen.paired("eager") == 0.5
    assert seen.usage("eager") == Usage(10, 20, 1 << 20)


def test_the_interval_is_students_on_logarithms() -> None:
    known = interval([0.9, 1.0, 1.1])
    assert known is not None
    assert known.low == pytest.approx(0.7767, abs=1e-4)
    assert known.high == pytest.approx(1.2789, abs=1e-4)
    assert interval([0.9]) is None
    wide = interval([1.0, 1e9] * 20)
    assert wide is not None
    assert 1e4 in wide


@pytest.mark.parametrize(
    ("mode", "seconds", "expected"),
    [
        ("intervals", [10.4, 10.4, 10.4], "met: ≥ 0.95"),
        ("intervals", [11.0, 8.0, 12.0], "missed: < 0.95"),
        ("ancestors", [11.0, 9.0, 12.0], "met: interval has 1"),
        ("ancestors", [11.0, 11.1, 11.2], "missed: < 0.97"),
        ("eager", [30.0, 30.0, 30.0], None),
    ],
)
def test_goals(mode: str, seconds: list[float], expected: str | None) -> None:
    assert goal(outcome(none=[10, 10, 10], **{mode: seconds}), mode) == expected


def test_runs_that_differ_are_void() -> None:
    seen = outcome(none=[1], eager=[1])
    seen.samples["eager"].append(sample(1, results=11))
    with pytest.raises(HeadwaterError, match="the measurement is void"):
        same_results(seen)


def test_answers_that_differ_are_void() -> None:
    seen = outcome(none=[1], eager=[1])
    usage = Usage(1, 1, 1)
    for mode, rows in {"eager": 20, "intervals": 21}.items():
        parts = {"generation": usage, "retrieval": usage}
        seen.samples[mode] = [Sample(parts, 10, answers={"retrieval": rows})]
    with pytest.raises(HeadwaterError, match=r"provenance \(retrieval\): 20, 21; the measurement"):
        same_results(seen)


def test_variants_take_turns_after_a_warm_up() -> None:
    ran: list[str] = []

    def variant(name: str):
        def run(meter: Meter) -> Sample:
            ran.append(name)
            return sample(1)

        return run

    told: list[str] = []
    cases = [Case({"window": 10}, 1_000, {name: variant(name) for name in ("none", "eager")})]
    (seen,) = compare(
        cases, 3, Meter(), lambda doing, done, total: told.append(f"{done}/{total} {doing}")
    )
    assert ran == "none eager eager none eager none none eager".split()
    assert told[:3] == [
        "0/8 window 10, none: warm-up",
        "1/8 window 10, eager: warm-up",
        "2/8 window 10, eager: 1 of 3",
    ]
    assert told[-1] == "8/8 done"
    assert len(seen.samples["eager"]) == 3


def test_a_variant_that_does_not_run_is_left_out_with_the_reason() -> None:
    def refused(meter: Meter) -> Sample:
        raise HeadwaterError("no such\nmode")

    case = Case({"window": 10}, 1_000, {"none": lambda meter: sample(1), "eager": refused})
    (seen,) = compare([case], 2, Meter())
    table = Table("", {"window": "", **RATES})
    table.add(seen)
    assert [row["mode"] for row in table.rows] == ["none", "eager"]
    assert table.rows[1]["goal"] == "did not run"
    assert table.notes == ["window 10: eager did not run: no such mode"]

    broken = Case({}, 1_000, {"none": refused})
    with pytest.raises(HeadwaterError, match="no such"):
        list(compare([broken], 1, Meter()))


def test_a_table_as_text() -> None:
    table = Table("", {"a": "", "b": ".2f", "c": ".1f", "d": ""})
    table.rows.append({"a": "x", "b": 1.234, "c": [1.0, 2.0], "d": 12_345})
    table.rows.append({"a": "y"})
    assert list(table.cells()) == [["x", "1.23", "1.0 – 2.0", "12,345"], ["y", "", "", ""]]


def test_cpu_counts_descendants_and_memory_peaks() -> None:
    burn = "x = bytearray(1); n = 0\nwhile n < 5_000_000: n += 1"
    with Meter().measure() as reading:
        held = bytearray(64 << 20)
        subprocess.run([sys.executable, "-c", burn], check=True)
    assert reading.usage.cpu > 0.1
    assert reading.usage.memory > len(held)
    assert reading.usage.seconds > 0


def test_the_cpu_of_a_child_that_nobody_waits_for_is_not_taken_back() -> None:
    # As a worker of Spark's: begun before, ended within, and its parent does not look.
    burn = "n = 0\nwhile n < 4_000_000: n += 1\nimport sys; sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", burn], stdin=subprocess.PIPE) as child:
        time.sleep(1)
        with Meter().measure() as reading:
            child.kill()
            time.sleep(0.3)
    assert reading.usage.cpu >= 0


def test_memory_is_watched_where_there_is_no_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.bench.meter._reset_peak", lambda pid: False)
    with Meter().measure() as reading:
        pass
    assert reading.usage.memory > 1 << 20


def test_an_interval_has_its_ends() -> None:
    assert 1 in Interval(1, 2)
    assert 1 not in Interval(0.5, 0.9)
