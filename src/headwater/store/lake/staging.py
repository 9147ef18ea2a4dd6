"""Rows of a batch that go through the driver: read from the files that tasks wrote.

Few rows are meant: dead letters, which tasks leave in a folder of their own until the batch is
committed, and results that are handed on to a named stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.store.lake.place import OWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.store.lake.place import Place
    from headwater.store.lake.tables import Added

_LETTERS = f"{OWN}/letters"


def letters(seq: int, source: str) -> str:
    """Where tasks leave the dead letters of a source in a batch; no relation has that name."""
    return f"{_LETTERS}/{seq}/{source}"


def staged(added: Sequence[Added]) -> tuple[list[Added], list[Added]]:
    """What tasks left for the driver, and the files that are to be part of tables."""
    found = [file for file in added if file.relation.startswith(_LETTERS)]
    return found, [file for file in added if not file.relation.startswith(_LETTERS)]


def letters_of(found: Sequence[Added]) -> dict[str, str]:
    """By source: where its letters are."""
    return {file.relation.rsplit("/", 1)[1]: file.relation for file in found}


def unstage(place: Place, seq: int) -> None:
    """Delete what was left for the driver, of tasks that failed as well."""
    filesystem, root = place.filesystem()
    folder = f"{root}/{_LETTERS}/{seq}"
    if filesystem.get_file_info(folder).type.name == "Directory":
        filesystem.delete_dir(folder)


def read(place: Place, relation: str, added: Sequence[Added]) -> pa.Table:
    """The rows of a relation in some files."""
    filesystem, root = place.filesystem()
    tables = []
    for file in added:
        if file.relation == relation:
            with filesystem.open_input_file(f"{root}/{relation}/{file.path}") as opened:
                tables.append(pq.ParquetFile(opened).read())
    return pa.concat_tables(tables)
