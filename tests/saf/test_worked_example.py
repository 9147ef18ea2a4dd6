"""The paper's worked example: Figure 7 gives the trace of Figure 8 and the replay of Figure 9."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import headwater.saf as saf
from tests.saf.figures import (
    DISCARDED,
    FIGURE_8,
    FIGURE_9,
    FLOW,
    RESULT,
    assertions,
)
from tests.saf.tables import parsed, rows

GRAPH = [
    *((1, 2), (1, 3)),
    *((3, 4), (2, 5)),
    *((4, 6), (4, 7), (4, 8), (5, 9)),
    *((6, 10), (7, 11), (8, 12)),
]
"""Figure 8(b): which row of the trace was made from which."""


@pytest.fixture
def provenance() -> saf.Provenance:
    return saf.Provenance(FLOW, assertions())


def test_the_trace_is_figure_8(provenance: saf.Provenance) -> None:
    answer = provenance.retrieve_ancestors([RESULT], until=[1])
    assert answer.trace.column_names == [
        *("index", "assertion_id", "timestamp", "seqno", "stream_id", "delay"),
        "trace_status",
    ]
    assert rows(answer.trace) == parsed(FIGURE_8)


def test_the_graph_is_figure_8b(provenance: saf.Provenance) -> None:
    answer = provenance.retrieve_ancestors([RESULT], until=[1])
    assert rows(answer.edges) == GRAPH


def test_the_sources_are_distinct(provenance: saf.Provenance) -> None:
    answer = provenance.retrieve_ancestors([RESULT], until=[1])
    assert rows(answer.sources) == [
        (1, 1279398105675, 1, 1, 0, 76.69),
        (7, 1279398107678, 2, 1, 0, 99.49),
        (13, 1279398109678, 3, 1, 0, 93.28),
    ]


def test_the_replay_is_figure_9(provenance: saf.Provenance) -> None:
    answer = provenance.retrieve_ancestors([RESULT], until=[1])
    event_3 = saf.Key(timestamp=1279398109678, seqno=3, stream_id=1)
    replay = provenance.replay([event_3], until=[7], history=answer.sources, keys=answer.asked)
    assert rows(replay.table) == FIGURE_9
    assert replay.contents == (93.28, 94, 94, [77, 100, 94], 94, 90.33, (90.33, 94))
    assert replay.results == {7: [(90.33, 94)]}


def test_a_replay_of_all_sources_makes_every_discarded_content(provenance: saf.Provenance) -> None:
    replay = provenance.replay(provenance.retrieve_ancestors([RESULT]).sources)
    ids = replay.table["assertion_id"].to_pylist()
    made = dict(zip(ids, replay.contents, strict=True))
    assert {each: made[each] for each in DISCARDED} == DISCARDED
    assert replay.results == {7: [(77, 77), (88.5, 100), (90.33, 94)]}


def test_the_trace_stops_at_other_streams_too(provenance: saf.Provenance) -> None:
    answer = provenance.retrieve_ancestors([RESULT], until=[2, 5])
    assert answer.trace["assertion_id"].to_pylist() == [None, 17, 18, 16, 14]
    assert answer.trace["trace_status"].to_pylist() == [0, 0, 0, 2, 2]
    assert answer.sources["assertion_id"].to_pylist() == [14, 16]


def _as_pandas(table: pa.Table) -> Any:
    return table.to_pandas()


def _as_relation(table: pa.Table) -> Any:
    return duckdb.connect().from_arrow(table)


@pytest.mark.parametrize("convert", [_as_pandas, _as_relation, pa.Table.to_reader])
def test_any_table_will_do(convert: Any) -> None:
    answer = saf.Provenance(FLOW, convert(assertions())).retrieve_ancestors(RESULT)
    assert rows(answer.trace) == parsed(FIGURE_8)


@pytest.mark.spark
def test_a_spark_frame_will_do(spark: SparkSession) -> None:
    frame = spark.createDataFrame(assertions())
    answer = saf.Provenance(FLOW, frame).retrieve_ancestors(RESULT)
    assert rows(answer.trace) == parsed(FIGURE_8)


def test_only_keys_are_needed_for_a_trace() -> None:
    keys = assertions().select(["timestamp", "seqno", "stream_id", "delay"])
    answer = saf.Provenance(FLOW, keys).retrieve_ancestors(RESULT)
    wanted = [(row[0], None, *row[2:]) for row in parsed(FIGURE_8)]
    assert rows(answer.trace) == wanted
