"""The files of a table: which of them are opened, however many there are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pads
import pytest

from headwater.store.lake import tables
from headwater.store.lake.place import Place
from headwater.store.lake.tables import Added, Table, columns_of
from headwater.store.lake.tasks import written

RUNS = "edges_by_record"


def rows(ids: list[int], seq: int) -> pa.Table:
    columns = columns_of(RUNS)
    values = {"seq": seq, "sink_no": 1, "source_no": 1}
    return pa.table(
        {name: [values.get(name, each) for each in ids] for name in columns.names}, columns
    )


def test_files_in_groups_are_chosen_like_single_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place.of(f"delta:{tmp_path}")
    table = Table(place, RUNS, columns_of(RUNS))
    table.make()
    table.look()
    # In no order, one of them over the bounds of others.
    firsts = [70, 0, 40, 20, 60, 10, 50, 30, -5]
    for number, first in enumerate(firsts):
        ids = [-5, 65] if first == -5 else list(range(first, first + 10))
        table.put([written(place, RUNS, rows(ids, number))])
    table.look()
    single = table.dataset()
    monkeypatch.setattr(tables, "GROUPED", 4)
    grouped = table.dataset()
    assert isinstance(grouped, pads.UnionDataset)
    assert grouped.count_rows() == single.count_rows() == 82
    for wanted in (-5, -4, 0, 9, 10, 44, 65, 79, 80):
        one = pads.field("source_id") == wanted
        chosen = sorted(file.path for file in grouped.get_fragments(one))
        assert chosen == sorted(file.path for file in single.get_fragments(one))
        assert grouped.to_table(filter=one).num_rows == single.to_table(filter=one).num_rows
    here = pads.field("source_id") == 44
    assert len(list(grouped.get_fragments(here))) == 2


def test_a_file_without_statistics_is_in_a_group_that_is_always_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "GROUPED", 1)
    place = Place.of(f"delta:{tmp_path}")
    table = Table(place, RUNS, columns_of(RUNS))
    table.make()
    table.look()
    for first in (0, 10, 20, 30):
        file = written(place, RUNS, rows([first], 1))
        told = {"numRecords": 1} if first == 20 else file.stats
        table.put([Added(RUNS, file.path, file.size, file.rows, told)])
    table.look()
    for wanted in (0, 10, 20, 30):
        found = table.dataset().to_table(filter=pads.field("source_id") == wanted)
        assert found["source_id"].to_pylist() == [wanted]


def test_the_most_files_with_one_value(tmp_path: Path) -> None:
    table = Table(Place.of(f"delta:{tmp_path}"), RUNS, columns_of(RUNS))
    table.make()
    table.look()
    assert table.overlap("source_id") == 0
    for number, (low, high) in enumerate([(0, 10), (10, 20), (5, 12), (30, 40), (30, 30)]):
        stats = {
            "numRecords": 1,
            "minValues": {"source_id": low},
            "maxValues": {"source_id": high},
            "nullCount": {"source_id": 0},
        }
        table.put([Added(RUNS, f"{number}.parquet", 1, 1, stats)])
        table.look()
    assert table.overlap("source_id") == 3
