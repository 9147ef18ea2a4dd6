"""Settings that a query takes over at its start, and what the session has afterwards."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from headwater.session import settings_of_query

pytestmark = pytest.mark.spark

FILES = "spark.sql.streaming.checkpointFileManagerClass"
CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing"


def test_a_session_has_its_own_settings_back(spark: SparkSession) -> None:
    name, before = "spark.sql.exchange.reuse", spark.conf.get("spark.sql.exchange.reuse")
    other = "false" if before == "true" else "true"
    with settings_of_query(spark, {name: other}):
        assert spark.conf.get(name) == other
        assert spark.conf.get(FILES) == f"{CHECKPOINTING}.FileSystemBasedCheckpointFileManager"
    assert spark.conf.get(name) == before
    assert spark.conf.get(FILES, None) is None


def test_a_chosen_way_to_the_files_of_checkpoints_is_kept(spark: SparkSession) -> None:
    chosen = f"{CHECKPOINTING}.FileContextBasedCheckpointFileManager"
    spark.conf.set(FILES, chosen)
    try:
        with settings_of_query(spark, {}):
            assert spark.conf.get(FILES) == chosen
    finally:
        spark.conf.unset(FILES)
