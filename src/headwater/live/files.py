"""What a live graph leaves for a process that comes after this one: a file of Arrow for a batch."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def flow_folder(store: Path, flow: str) -> Path:
    """The folder of a flow's live graph beside its store."""
    return store / "live" / flow


def times_folder(flow: Path, source: str) -> Path:
    """Within it, the folder with the times of a source's records."""
    return flow / source / "times"


def place(folder: Path, batch: int) -> Path:
    """Where the file of a batch is."""
    return folder / f"{batch}.arrow"


def batches(folder: Path) -> Iterator[int]:
    """The batches that have a file, in order."""
    yield from sorted(int(file.stem) for file in folder.glob("[0-9]*.arrow"))


def read(folder: Path, batch: int) -> pa.Table:
    """The table of a batch."""
    file = place(folder, batch)
    try:
        with pa.OSFile(str(file)) as opened:
            return pa.ipc.open_file(opened).read_all()
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise StoreError(
            f"{file} is damaged; put a copy of its store and checkpoint back, or start both anew"
        ) from error


def write(folder: Path, batch: int, table: pa.Table) -> None:
    """Write the table of a batch, whole or not at all; what an earlier attempt left is replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{batch}.tmp"
    with temporary.open("wb") as opened:
        with pa.ipc.new_file(opened, table.schema) as writer:
            writer.write_table(table)
        # The batch commits after this, and needs it: a power cut must not take it alone.
        os.fsync(opened.fileno())
    os.replace(temporary, place(folder, batch))


def remove(folder: Path, batch: int) -> None:
    """Remove the file of a batch, if it is there."""
    place(folder, batch).unlink(missing_ok=True)
