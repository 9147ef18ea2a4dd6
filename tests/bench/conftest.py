"""The quick run of every benchmark, made once: single tests look at their parts of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headwater.bench.everything.parts import chosen
from headwater.bench.everything.running import Folder, run_one
from headwater.bench.figures import tables_of
from headwater.bench.lab import uncompiled
from headwater.bench.report import Table

Row = dict[str, Any]


@dataclass(frozen=True)
class Quick:
    """Reports in the size `quick`, each made when it is first asked for."""

    folder: Folder

    def report(self, name: str) -> dict[str, Any]:
        (run,) = chosen([name])
        if self.folder.kept(run, "quick") is None:
            self.folder.keep(run, run_one(run, "quick", self.folder.path))
        report = self.folder.reports([run])[name]
        assert "failed" not in report["run"], report["run"]["failed"]
        return report

    def tables(self, name: str) -> list[dict[str, Any]]:
        return tables_of(self.report(name))

    def rows(self, name: str) -> list[Row]:
        (table,) = self.tables(name)
        return list(table["rows"])


@pytest.fixture(scope="module")
def quick(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quick]:
    """Each benchmark once, in this process; nothing is left in the temporary folder."""
    scratch: Path = tmp_path_factory.mktemp("scratch")
    as_dict = Table.as_dict

    def written_for_people_too(table: Table) -> Row:
        assert len(list(table.cells())) == len(table.rows)
        return as_dict(table)

    with pytest.MonkeyPatch.context() as patch, uncompiled(spark):
        patch.setattr(tempfile, "tempdir", str(scratch))
        patch.setattr(Table, "as_dict", written_for_people_too)
        yield Quick(Folder(tmp_path_factory.mktemp("reports")))
    assert not list(scratch.glob("headwater-bench-*"))
