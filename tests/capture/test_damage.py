"""Failures on a damaged checkpoint are told from others, and say what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw
from headwater.capture.damage import damaged_checkpoint
from headwater.errors import RunError
from tests.support.streams import Lab

AT = "\n\tat org.apache.spark.sql.execution.streaming."
LOG = f"{AT}checkpointing.HDFSMetadataLog.get(HDFSMetadataLog.scala:1)"
TASK = f"{AT}operators.stateful.join.Join.apply(Join.scala:1)"
STORE = f"{AT}state.StateStoreRDD.compute(StateStoreRDD.scala:1)"


@pytest.mark.parametrize(
    ("text", "damaged"),
    [
        (f"a\nCaused by: x.ChecksumException: Checksum error: file:/cp/commits/3{LOG}", True),
        (f"java.io.EOFException{STORE}", True),
        (f"x.JsonParseException: Unexpected character{TASK * 20}{STORE}", False),
        (f"java.io.IOException: No space left on device{LOG}", False),
        ("java.lang.NumberFormatException: for input 'x'", False),
    ],
)
def test_what_is_a_damaged_checkpoint(text: str, damaged: bool) -> None:
    said = damaged_checkpoint(RuntimeError(text), Path("/cp"))
    assert (said is not None) is damaged
    if said is not None:
        assert said.startswith("checkpoint /cp is damaged (")
        assert said.endswith(
            "put a copy of it back, or start with a new checkpoint and a new store"
        )


@pytest.mark.spark
@pytest.mark.parametrize("log", ["commits", "offsets"])
def test_a_damaged_log_of_spark(log: str, flow: hw.Flow, lab: Lab) -> None:
    windows = lab.source(flow, "a", "1 | 1 | 1 | 1\n--\n2 | 30 | 1 | 1")
    flow.sink("out", windows.filter("v > 0"))
    store = lab.home / "store"
    flow.start(store=str(store), available_now=True).wait()
    place = store / "checkpoints" / flow.name / log
    newest = max((f for f in place.iterdir() if f.name.isdigit()), key=lambda f: int(f.name))
    newest.write_text(newest.read_text()[:5])
    with pytest.raises(RunError, match=r"is damaged.*put a copy of (it|its checkpoint) back"):
        flow.start(store=str(store), available_now=True).wait()
