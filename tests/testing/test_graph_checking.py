"""The checker of live graphs finds what is wrong with them, and nothing where nothing is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from headwater.flow import nodes
from headwater.testing.graph_checking import Checked, check_graph
from tests.testing.graphs import changes, given, sink, told
from tests.testing.sequences import count_window
from tests.testing.tables import aggregate, call, col, expr, named, seconds, session, source, window
from tests.testing.test_joins import joined

# --- rules about what is delivered, one graph by hand ---------------------------------------------

DATA = """
    0 a 1 1 0 0
    0 a 2 4 0 0
    1 a 3 12 0 0
    2 a 4 25 0 0
"""
WATERMARKS = [0, 4, 12, 25]
RIGHT = """
    0 vertex a:1 1
    0 vertex a:2 4
    0 result all:101 1
    0 result all:102 4
    0 edge a:1 all:101
    0 edge a:2 all:102
    1 vertex a:3 12
    1 result all:103 12
    1 edge a:3 all:103
    2 vertex a:4 25
    2 result all:104 25
    2 result sums:1 9.999999
    2 edge a:4 all:104
    2 edge a:1 sums:1
    2 edge a:2 sums:1
    2 label a:1
    2 label a:2
    3 result sums:2 19.999999
    3 edge a:3 sums:2
    3 label a:3
"""


def two_sinks(name: str = "a", delay: str | None = "0 seconds") -> list[nodes.Sink]:
    """All records, and counts over ten seconds."""
    above = source(name, delay)
    return [sink("all", above), sink("sums", aggregate(above, over=window("ts", 10)))]


def checked(text: str, **options: Any) -> Checked:
    return check_graph(changes(text, WATERMARKS), two_sinks(), given(DATA, WATERMARKS), **options)


def without(*lines: str) -> str:
    """The right graph without some lines."""
    left = [line for line in RIGHT.splitlines() if line.strip() not in lines]
    assert len(left) == len(RIGHT.splitlines()) - len(lines)
    return "\n".join(left)


def test_a_right_graph_passes() -> None:
    found = checked(RIGHT)
    assert str(found) == "nothing is wrong"
    assert found == Checked([], records=4, results=6, edges=7, labels=3, alive=1, shared=3, held=8)


@pytest.mark.parametrize(
    ("missing", "extra", "line"),
    [
        ((), "1 vertex a:1 1", "batch 1: R-V: the vertex of record a:1 was already delivered in"),
        ((), "3 vertex a:9 9", "batch 3: R-V: the vertex of record a:9 has no edge"),
        ((), "3 result sums:1 9.999999", "batch 3: R-V: the vertex of result sums:1 was already"),
        (("1 vertex a:3 12",), "", "R-V: record a:3 has edges, and no vertex"),
        (("0 vertex a:1 1",), "0 vertex a:1 2", "record a:1 is at 2024-01-01 00:00:02, the record"),
        (("1 vertex a:3 12",), "0 vertex a:3 12", "a:3 comes before the record, in batch 1"),
        (("1 vertex a:3 12",), "2 vertex a:3 12", "R-E: the edge a:3 -> all:103 comes before the"),
        (("0 result all:101 1",), "1 result all:101 1", "a:1 -> all:101 comes before the vertex"),
        (("2 result sums:1 9.999999",), "", "R-V: result sums:1 has edges, and no vertex"),
        ((), "3 edge a:1 sums:1", "R-E: the edge a:1 -> sums:1 was already delivered in batch 2"),
        (("2 edge a:1 sums:1",), "3 edge a:1 sums:1", "comes after its result, of batch 2"),
        ((), "3 label a:1", "R-L: the label of record a:1 was already delivered in batch 2"),
        ((), "3 label-of all:101", "R-L: the label of result all:101 was already delivered in"),
        (
            ("0 result all:101 1",),
            "0 vertex-only all:101 1\n1 label-of all:101",
            "result all:101 is labelled in batch 1, not at its delivery",
        ),
        (
            ("0 result all:101 1",),
            "0 vertex-only all:101 1",
            "result all:101 is labelled never, not at its delivery",
        ),
        ((), "3 label a:7", "R-L: record a:7 is labelled, and has no vertex"),
        (("3 label a:3",), "0 label a:3", "R-L: record a:3 is labelled before its vertex"),
        (("2 label a:1",), "1 label a:1", "a:1 is labelled before the edge a:1 -> sums:1, of batc"),
    ],
)
def test_each_rule_is_checked(missing: tuple[str, ...], extra: str, line: str) -> None:
    found = checked(f"{without(*missing)}\n{extra}")
    assert any(line in violation for violation in found.violations), found


def test_a_label_too_early_is_found_by_what_steps_hold() -> None:
    # No edge comes after it in this run, and yet one may: its window is open.
    found = checked(f"{RIGHT}\n2 label a:4")
    holds = "record a:4 is labelled since batch 2, and step 'aggregate' of sink 'sums' holds it"
    assert found.violations == [f"batch 2: {holds}", f"batch 3: {holds}"]


def test_a_label_too_late_is_found() -> None:
    found = checked(f"{without('2 label a:1', '2 label a:2')}\n3 label a:1")
    reached = "though its reach, 2024-01-01 00:00:10, was reached at 2024-01-01 00:00:12"
    assert found.violations == [
        f"batch 2: record a:1 at 2024-01-01 00:00:01 is labelled in batch 3 {reached}",
        f"batch 2: record a:2 at 2024-01-01 00:00:04 is labelled never {reached}",
    ]


def test_results_are_compared_with_the_interpreter_s() -> None:
    found = checked(without("2 edge a:2 sums:1"))
    result = "has a result of sums at 2024-01-01 00:00:09.999999"
    assert found.violations == [
        f"batch 2: only the interpreter {result} from {{a:1, a:2}}",
        f"batch 2: only the graph {result} from {{a:1}}",
    ]


def test_changes_must_be_those_of_the_batches() -> None:
    wrong = changes(RIGHT, WATERMARKS)
    wrong[1] = replace(wrong[1], watermark=wrong[2].watermark)
    found = check_graph(wrong, two_sinks(), given(DATA, WATERMARKS))
    assert any("its changes are at 2024-01-01 00:00:12" in line for line in found.violations)
    assert any("says that it is of batch 1 at 2024-01-01 00:00:04" in v for v in found.violations)
    found = check_graph(wrong[:3], two_sinks(), given(DATA, WATERMARKS))
    assert found.violations[-1] == (
        "the graph has changes of batches [0, 1, 2], the run had 4 batches"
    )


def test_a_finished_flow_has_all_its_labels() -> None:
    found = checked(RIGHT, finished=True)
    finished = "though the flow was finished at 2024-01-01 00:00:25"
    assert found.violations == [
        f"batch 3: record a:4 at 2024-01-01 00:00:25 is labelled never {finished}"
    ]


# --- records that come again ----------------------------------------------------------------------

AGAIN = f"{DATA.rstrip()}\n    3 a 1 1 0 0"
"""The first record comes a second time, when it is past."""


def again(text: str, data: str = AGAIN) -> Checked:
    return check_graph(changes(text, WATERMARKS), two_sinks(), given(data, WATERMARKS))


def test_a_record_that_comes_again_may_have_an_edge_after_its_label() -> None:
    text = f"{RIGHT}\n3 result all:105 1\n3 edge a:1 all:105"
    found = again(text)
    assert str(found) == "nothing is wrong"
    assert found.came_again == 1


def test_but_not_a_second_vertex_or_label() -> None:
    text = f"{RIGHT}\n3 result all:105 1\n3 edge a:1 all:105\n3 vertex a:1 1\n3 label a:1"
    assert [line.partition(" was ")[0] for line in again(text).violations] == [
        "batch 3: R-V: the vertex of record a:1",
        "batch 3: R-L: the label of record a:1",
    ]


def test_and_not_before_it_came() -> None:
    text = f"{without('2 label a:1')}\n1 label a:1\n3 result all:105 1\n3 edge a:1 all:105"
    found = again(text)
    assert found.came_again == 1
    assert [line for line in found.violations if "R-L" in line] == [
        "batch 1: R-L: record a:1 is labelled before the edge a:1 -> sums:1, of batch 2"
    ]
    assert any("holds it" in line for line in found.violations)


# --- when labels are due, step by step ------------------------------------------------------------


def labelled(
    sinks: Sequence[nodes.Sink],
    data: str,
    watermarks: Sequence[int],
    labels: Mapping[str, int],
    **options: Any,
) -> list[str]:
    """What is wrong with labels in the given batches, all else being right."""
    input_ = given(data, watermarks)
    found = check_graph(told(sinks, input_, watermarks, labels), sinks, input_, **options)
    return [line.partition(" at ")[0].partition(", and ")[0] for line in found.violations]


def ones(above: nodes.Node) -> list[nodes.Sink]:
    """A sink, and one for the records of `a` themselves, so that each has a vertex at once."""
    return [sink("all", source()), sink("out", above)]


ALONE = "0 a 1 12 0 0"


def due(above: nodes.Node, watermark: int, data: str = ALONE, who: str = "a:1", **o: Any) -> None:
    """The label is right at this watermark, late in the batch after, and early in that before."""
    watermarks = [0, watermark - 1, watermark, watermark + 1]
    sinks = ones(above)
    others = {} if "label_others" not in o else o.pop("label_others")
    assert labelled(sinks, data, watermarks, {who: 2, **others}, **o) == []
    assert f"batch 2: record {who}" in labelled(sinks, data, watermarks, {who: 3, **others}, **o)
    if o.get("expiry") != "ananke":
        early = labelled(sinks, data, watermarks, {who: 1, **others}, **o)
        assert f"batch 1: record {who} is labelled since batch 1" in early


def test_nothing_but_stateless_steps() -> None:
    only = [sink("all", source())]
    assert labelled(only, ALONE, [0, 1], {"a:1": 0}) == []
    assert labelled(only, ALONE, [0, 1], {"a:1": 1}) == ["batch 0: record a:1"]


def test_sliding_windows_hold_a_record_to_the_end_of_the_last() -> None:
    due(aggregate(source(), over=window("ts", 10, 4)), watermark=22)


def test_windows_of_windows() -> None:
    inner = aggregate(source(), "k", over=window("ts", 10, 5), step="inner")
    time = nodes.Project(
        step="time",
        inputs=(inner,),
        columns=(expr(named(call("window_time", col("window")), "ts")), expr(col("k"))),
    )
    # Windows that end at 15 and at 20 hold it; the last moments of both are between 14 and 24.
    due(aggregate(time, over=window("ts", 10, offset=4)), watermark=24)


def test_groups_by_the_time_itself() -> None:
    due(aggregate(source(), "k", "ts"), watermark=12)


def test_rows_wait_for_partners() -> None:
    # A left row at 12 may meet right ones up to 17; Spark's bound is a millisecond more.
    join = joined("left_outer", low=10, high=5)
    watermarks = [0, 17, 18, 19]
    assert labelled(ones(join), ALONE, watermarks, {"a:1": 2}) == []
    late = labelled(ones(join), ALONE, watermarks, {"a:1": 3})
    assert late == ["batch 2: record a:1"]
    early = labelled(ones(join), ALONE, watermarks, {"a:1": 1})
    assert "batch 1: record a:1 is labelled since batch 1" in early


def test_a_watermark_behind_a_join_lags() -> None:
    # Windows behind it end by a watermark that is 10.001 s behind; the pair's time may be 17.001.
    join = joined("left_outer", low=10, high=5)
    counted = aggregate(join, over=window("ts", 10), step="count")
    watermarks = [0, 30, 31, 32]
    assert labelled(ones(counted), ALONE, watermarks, {"a:1": 2}) == []
    assert labelled(ones(counted), ALONE, watermarks, {"a:1": 3}) == ["batch 2: record a:1"]
    early = labelled(ones(counted), ALONE, watermarks, {"a:1": 1})
    assert "batch 1: record a:1 is labelled since batch 1" in early


def test_sessions_hold_a_record_as_long_as_they_grow() -> None:
    growing = "0 a 1 12 0 0\n0 a 2 15 0 0\n0 a 3 99 1 0"
    sessions = aggregate(source(), "k", over=session("ts", 5))
    due(sessions, watermark=20, data=growing, label_others={"a:2": 2})
    due(sessions, watermark=17)


def test_a_step_above_a_session_holds_a_record_as_well() -> None:
    inner = aggregate(source(), "k", over=window("ts", 10), step="inner")
    time = nodes.Project(
        step="time",
        inputs=(inner,),
        columns=(expr(named(call("window_time", col("window")), "ts")), expr(col("k"))),
    )
    outer = aggregate(time, "k", over=session("ts", 5), step="outer")
    watermarks = [0, 15, 24, 25, 26]
    for batch, wrong in {0: "holds", 1: "holds", 2: "holds", 3: "", 4: "late"}.items():
        lines = labelled(ones(outer), ALONE, watermarks, {"a:1": batch})
        assert bool(lines) == bool(wrong), (batch, lines)


def test_deduplication_holds_nothing() -> None:
    unique = nodes.Deduplicate(step="unique", inputs=(source(),), columns=("k", "ts"))
    assert labelled([sink("out", unique)], ALONE, [0, 1], {"a:1": 0}) == []


def test_steps_by_order_of_arrival_keep_a_record_to_the_end() -> None:
    sinks = ones(count_window(source(), 2))
    data = f"{ALONE}\n0 a 2 13 0 0"
    assert labelled(sinks, data, [0, 90, 99], {}) == []
    kept = ["batch 0: record a:1 is labelled"]
    assert labelled(sinks, data, [0, 90, 99], {"a:1": 0}) == kept
    finished = {"a:1": 2, "a:2": 2}
    assert labelled(sinks, data, [0, 90, 99], finished, finished=True) == []


def test_times_that_a_step_sets_say_nothing() -> None:
    marked = nodes.Watermark(
        step="mark", inputs=(source(delay=None),), column="ts", delay="0 seconds"
    )
    counted = aggregate(marked, over=window("ts", 10))
    assert labelled([sink("out", counted)], ALONE, [0, 20, 30], {}) == []
    assert labelled([sink("out", counted)], ALONE, [0, 20, 30], {"a:1": 1}) == []


def test_neither_does_a_union_that_takes_another_column_for_the_time() -> None:
    columns = [col("id"), named(call("+", col("ts"), seconds(30)), "ts"), col("k"), col("v")]
    later = nodes.Project(step="later", inputs=(source("b"),), columns=tuple(map(expr, columns)))
    both = nodes.Union(step="union", inputs=(source("a"), later), by_name=True)
    sinks = [sink("out", aggregate(both, over=window("ts", 10))), sink("all", source("b"))]
    data = f"{ALONE}\n0 b 2 12 0 0"
    assert labelled(sinks, data, [0, 19, 20, 60], {"a:1": 2}) == []
    held = labelled(sinks, data, [0, 19, 20, 60], {"a:1": 2, "b:2": 2})
    assert held[-1] == "batch 2: record b:2 is labelled since batch 2"
    assert labelled(sinks, data, [0, 19, 20, 60], {}) == ["batch 2: record a:1"]


def test_ananke_s_rule() -> None:
    # Past once 12 < W - 10.
    sinks = [sink("out", aggregate(source(), over=window("ts", 10, 5)))]
    watermarks = [0, 20, 22, 23]
    assert labelled(sinks, ALONE, watermarks, {"a:1": 3}, expiry="ananke") == []
    assert labelled(sinks, ALONE, watermarks, {}, expiry="ananke") == ["batch 3: record a:1"]
    # Behind a join the sink's watermark lags by 10.001 s, and the range is 15.003 s wide.
    join = [sink("out", joined("left_outer", low=10, high=5))]
    watermarks = [0, 37, 38, 39]
    assert labelled(join, ALONE, watermarks, {"a:1": 2}, expiry="ananke") == []
    assert labelled(join, ALONE, watermarks, {"a:1": 3}, expiry="ananke") == ["batch 2: record a:1"]
