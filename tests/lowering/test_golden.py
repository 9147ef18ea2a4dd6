"""`plain` is the user's own plan, and the plans of `eager` are as written down beside this test.

`HEADWATER_GOLDEN=write` writes them down anew.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

import headwater as hw
from headwater.flow.nodes import KINDS
from headwater.lowering.outputs import MODES, lower
from headwater.lowering.plain import Plain
from headwater.lowering.tracing import Tracing
from tests.lowering.cases import CASES, SCHEMA

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def streams(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, DataFrame]:
    folder = str(tmp_path_factory.mktemp("in"))
    read = spark.readStream.schema(SCHEMA)
    return {n: read.parquet(folder).withWatermark("ts", "1 second") for n in ("a", "b")}


def optimised(df: DataFrame) -> Any:
    optimizer = df.sparkSession._jsparkSession.sessionState().optimizer()
    return optimizer.execute(df._jdf.queryExecution().analyzed())


def frames(flow: hw.Flow, streams: dict[str, DataFrame]) -> tuple[hw.Frame, hw.Frame]:
    a, b = (
        flow.source(name, df=df, event_time="ts", id="id", keep="none")
        for name, df in streams.items()
    )
    return a, b


@pytest.mark.parametrize("case", CASES)
def test_plain_is_the_plan_the_user_would_have_written(
    case: str, spark: SparkSession, streams: dict[str, DataFrame]
) -> None:
    flow = hw.Flow("golden", spark)
    flow.sink("out", CASES[case](*frames(flow, streams)))
    own = optimised(lower(flow.sinks, {"out": "none"}, spark).df)
    written = optimised(CASES[case](streams["a"], streams["b"]))
    assert own.sameResult(written), f"{own.toString()}\n--- but the user's is\n{written.toString()}"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES)
def test_plans_are_as_written_down(
    case: str, mode: str, spark: SparkSession, streams: dict[str, DataFrame]
) -> None:
    flow = hw.Flow("golden", spark)
    flow.sink("out", CASES[case](*frames(flow, streams)))
    text = _normal(optimised(lower(flow.sinks, {"out": mode}, spark).df).toString())
    file = GOLDEN / f"{case}.{mode}.txt"
    if os.environ.get("HEADWATER_GOLDEN") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    if not pyspark.__version__.startswith("4.2."):
        pytest.skip("plans are written down for Spark 4.2; other versions print them differently")
    assert text == file.read_text()


def _normal(plan: str) -> str:
    """A plan's text without what differs from run to run: ids of columns and of watermarks."""
    numbers: dict[str, str] = {}
    plan = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<watermark>", plan)
    plan = re.sub(r"FileSource\[[^]]*\]", "FileSource[…]", plan)
    return re.sub(r"#\d+", lambda m: numbers.setdefault(m[0], f"#{len(numbers)}"), plan)


def test_every_kind_of_node_is_lowered() -> None:
    kinds = {kind.kind for kind in KINDS}
    for lowering in (Plain, *MODES.values()):
        assert set(lowering.supported()) == kinds


def test_a_kind_that_a_lowering_lacks_is_refused_by_name(
    spark: SparkSession, streams: dict[str, DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = hw.Flow("golden", spark)
    flow.sink("out", frames(flow, streams)[0].filter("v > 0"))
    monkeypatch.delattr(Tracing, "visit_filter")
    with pytest.raises(
        hw.UnsupportedError, match="capture 'eager' can't handle the filter step 'filter-1'"
    ):
        lower(flow.sinks, {"out": "eager"}, spark)
