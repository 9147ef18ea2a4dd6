"""The checker passes a good run with hot changes, and fails whatever is tampered with in it."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater import streams
from headwater.compose import Composition
from tests.deploy.support import host_of, settle
from tests.soak.checking import Found, check_flows
from tests.soak.flows import FLOWS, STREAMS, changed
from tests.soak.publishing import Supply, publish_chunk, traffic
from tests.soak.recomputing import acknowledged, stopped

pytestmark = pytest.mark.spark
CHUNKS = 64


def test_it_passes_what_is_right_and_says_what_is_wrong(
    tmp_path: Path, interpreted: SparkSession
) -> None:
    supply = traffic(7)
    run(tmp_path, interpreted, supply)
    right = check(tmp_path, interpreted)
    assert not right.wrong, right.wrong
    assert right.counts["units"] == 2
    assert right.counts["results recomputed"] > 5
    assert right.counts["graph labels"] > 20
    assert right.counts["edges recomputed"] == right.counts["graph edges"] > 20

    database, copy = tmp_path / "flows" / "store" / "headwater.duckdb", tmp_path / "copy"
    shutil.copy2(database, copy)
    for table, wrong, expected in TAMPERED:
        with duckdb.connect(database) as connection:
            name = results_table(connection) if table == "results" else table
            first = f"WHERE rowid = (SELECT min(rowid) FROM {name})"
            connection.execute(f"{wrong.format(name)} {first}")
        found = check(tmp_path, interpreted).wrong
        assert any(expected in line for line in found), (wrong, found)
        shutil.copy2(copy, database)
    assert not check(tmp_path, interpreted).wrong, "all is as it was"

    registry = streams.open(tmp_path / "streams")
    told = Found()
    rows = acknowledged(registry, supply, CHUNKS, told)
    with hw.open(tmp_path / "flows" / "store") as store:
        stopped(registry, store, rows, told, random.Random(1))
    assert not told.wrong, told.wrong
    again = registry.table("stopped").slice(0, 1)
    registry.publish("stopped", again, consent=True)
    registry.publish("reports", supply.events(0)[:1], consent=True)
    assert any("is there 2 times" in line for line in check(tmp_path, interpreted).wrong)
    acknowledged(registry, supply, CHUNKS, told)
    assert any("1 times too many" in line for line in told.wrong)


TAMPERED = [
    ("results", "UPDATE {0} SET lo = lo + 1, hi = hi + 1", "only the store"),
    ("results", "DELETE FROM {0}", "only the interpreter"),
    ("edges", "DELETE FROM {0}", "only the interpreter"),
    ("labels", "DELETE FROM {0}", "is labelled never"),
    ("labels", "UPDATE {0} SET seq = seq + 1", "live graph"),
    ("vertices", "DELETE FROM {0}", "R-V"),
]
"""What is done to the first row of a table, and part of what the checker has to say then."""


def run(home: Path, spark: SparkSession, supply: Supply) -> None:
    """Traffic that is changed in the middle."""
    flow = Composition.parse(FLOWS["traffic"])
    with host_of(home, spark, live=True) as host:
        declared = STREAMS["reports"]
        host.streams.create("reports", declared["schema"], event_time="ts", id="tid")
        host.deploy(flow, since="start")
        for number in range(CHUNKS):
            if number == CHUNKS // 2:
                settle(host)
                host.deploy(changed(flow, 1, random.Random(5)))
            publish_chunk(host.streams, supply, number, {})
        host.streams.publish("reports", [supply.last(CHUNKS)], consent=True)
        settle(host)


def check(home: Path, spark: SparkSession) -> Found:
    """What the checker says."""
    found = Found()
    check_flows(home, spark, found)
    return found


def results_table(connection: duckdb.DuckDBPyConnection) -> str:
    """The table of a sink of stopped vehicles that has some."""
    tables = connection.execute(
        "SELECT table_name FROM duckdb_columns() WHERE column_name = 'lo' "
        "AND table_name LIKE 'result_%'"
    ).fetchall()
    for (name,) in tables:
        (count,) = connection.execute(f"SELECT count(*) FROM {name}").fetchone() or (0,)
        if count:
            return str(name)
    raise AssertionError(tables)
