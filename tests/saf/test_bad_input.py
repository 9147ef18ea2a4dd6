"""What is refused, in one line that says what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import headwater.saf as saf
from headwater.errors import FlowError, HeadwaterError, UnknownName
from tests.saf.figures import FLOW, RESULT, assertions

FIRST = saf.Key(1279398105675, 1, 1)


def refused(kind: type[HeadwaterError], text: str, call: Callable[[], Any]) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert text in str(caught.value)


@pytest.mark.parametrize("column", ["timestamp", "seqno", "stream_id", "delay"])
def test_a_missing_column(column: str) -> None:
    lacking = assertions().drop_columns([column])
    text = f"the assertions table has no column '{column}'; it has: assertion_id, "
    refused(saf.TableError, text, lambda: saf.Provenance(FLOW, lacking))


@pytest.mark.parametrize(
    ("column", "values", "text"),
    [
        ("delay", pa.array([0.5] * 18), "column 'delay' is double, not integers of milliseconds"),
        ("seqno", pa.array(["a"] * 18), "column 'seqno' is string, not integers"),
        ("seqno", pa.array([None] * 18, pa.int64()), "column 'seqno' has nulls"),
        ("seqno", pa.array([2**63] * 18, pa.uint64()), "column 'seqno' exceeds 64-bit"),
    ],
)
def test_a_column_of_the_wrong_type(column: str, values: pa.Array, text: str) -> None:
    table = assertions()
    table = table.set_column(table.column_names.index(column), column, values)
    refused(saf.TableError, text, lambda: saf.Provenance(FLOW, table))


@pytest.mark.parametrize("data", [None, [1, 2], "events.parquet"])
def test_no_table(data: Any) -> None:
    refused(saf.TableError, "the assertions table must be", lambda: saf.Provenance(FLOW, data))


def test_a_pandas_table_that_arrow_has_no_type_for() -> None:
    mixed = pd.DataFrame({"event_content": [1.5, [1.5], "x"]})
    refused(saf.TableError, "can't be read as an Arrow", lambda: saf.Provenance(FLOW, mixed))


def test_keys_that_are_no_keys() -> None:
    provenance = saf.Provenance(FLOW, assertions())
    refused(saf.TableError, "keys must be saf.Key", lambda: provenance.ancestors([(1, 2, 3, 4)]))


@pytest.mark.parametrize("kind", [saf.UnknownStream, UnknownName, KeyError])
def test_an_unknown_stream(kind: Any) -> None:
    provenance = saf.Provenance(FLOW, assertions())
    text = "keys: no stream 8 in the flow; it has: 1, 2, 3, 4, 5, 6, 7"
    refused(kind, text, lambda: provenance.retrieve_ancestors(saf.Key(1, 1, 8)))
    refused(kind, "until: no stream 9", lambda: provenance.retrieve_ancestors(RESULT, until=[9]))
    refused(kind, "until: no stream 'a'", lambda: provenance.replay(FIRST, until=["a"]))  # type: ignore[list-item]
    refused(kind, "inputs: no stream 8", lambda: provenance.replay(saf.Key(1, 1, 8)))


def test_a_stream_that_no_operation_makes() -> None:
    provenance = saf.Provenance(FLOW, assertions())
    refused(
        FlowError,
        "no operation makes stream 1, and it is not in until",
        lambda: provenance.retrieve_ancestors(RESULT, until=[5]),
    )


def test_a_replay_that_lacks_an_input() -> None:
    join = saf.TimeWindowJoin(id=1, left=1, right=2, output=3, left_time=1, right_time=1)
    provenance = saf.Provenance(saf.Flow([join]), assertions())
    refused(
        FlowError,
        "no operation makes stream 2, and it is not in the inputs of the replay",
        lambda: provenance.replay(FIRST),
    )


def test_a_replay_without_content() -> None:
    provenance = saf.Provenance(FLOW, assertions())
    text = "event 1 of stream 2 has no content"
    refused(saf.TableError, text, lambda: provenance.replay(saf.Key(1279398105684, 1, 2, 9)))


def test_a_cycle() -> None:
    loop = [saf.Map(id=1, input=1, output=2), saf.Filter(id=2, input=2, output=1)]
    refused(FlowError, "the flow has a cycle of streams: ", lambda: saf.Flow(loop))


def test_two_makers_of_one_stream() -> None:
    both = [saf.Map(id=1, input=1, output=3), saf.Map(id=2, input=2, output=3)]
    refused(FlowError, "operations 1 and 2 both make stream 3", lambda: saf.Flow(both))


def test_two_operations_of_one_id() -> None:
    both = [saf.Map(id=1, input=1, output=2), saf.Map(id=1, input=2, output=3)]
    refused(FlowError, "two operations have the id 1", lambda: saf.Flow(both))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: saf.TimeWindow(id=4, input=1, output=2, time=-1), "operation 4: time=-1"),
        (lambda: saf.LengthWindow(id=4, input=1, output=2, length=0), "operation 4: length=0"),
        (
            lambda: saf.TimeWindowJoin(
                id=4,
                left=1,
                right=2,
                output=3,
                left_time=5,
                right_time="1s",  # type: ignore[arg-type]
            ),
            "operation 4: right_time='1s' must be an integer of at least 0",
        ),
        (
            lambda: saf.LengthWindowJoin(
                id=4, left=1, right=2, output=3, left_length=0, right_length=1
            ),
            "operation 4: left_length=0 must be an integer of at least 1",
        ),
    ],
)
def test_windows_without_sense(make: Callable[[], Any], text: str) -> None:
    refused(FlowError, text, make)
