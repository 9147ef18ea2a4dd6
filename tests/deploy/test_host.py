"""The host itself: what it does when Spark is gone."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater.deploy import host as hosting
from headwater.errors import RunError
from tests.deploy.support import host_of, parse, publish, settle


def test_a_host_ends_when_its_jvm_is_gone(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with host_of(tmp_path, spark) as host:
        assert not host.wait(0.1)
        monkeypatch.setattr(hosting, "jvm_has_ended", lambda: True)
        with pytest.raises(RunError, match="Spark's JVM has ended .* start this again"):
            host.wait(10.0)
        with pytest.raises(RunError, match="Spark's JVM has ended"):
            host.drain(1.0)


def test_a_damaged_checkpoint_fails_its_unit_alone(tmp_path: Path, spark: SparkSession) -> None:
    text = (
        "some: {{filter: {{from: nums, where: n > 1}}}}\nout: {{sink: {{from: some, stream: {0}}}}}"
    )
    with host_of(tmp_path, spark) as host:
        for name in ("one", "two"):
            host.deploy(parse(name, text.format(f"{name}-out")), since="start")
        publish(host, 0, 4)
        settle(host)
    log = tmp_path / "flows" / "one" / "units" / "some@1" / "checkpoint" / "sources" / "0" / "0"
    log.write_text(log.read_text()[:20])
    with host_of(tmp_path, spark) as host:
        (unit,) = host.deployment("one").status()["units"]
        assert "sources/0/0 is damaged; put a copy of its checkpoint back" in unit["error"]
        assert [each.state for each in host.deployment("two").units] == ["running"]
