"""Where an export goes: a file that is whole or not there at all, or a stream as it is."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from collections.abc import Iterator

Target = str | os.PathLike[str] | IO[bytes]


def place(to: Target) -> Path | None:
    """The file that is meant, checked before anything is asked of the store; None for a stream."""
    if not isinstance(to, str | os.PathLike):
        return None
    path = Path(to)
    if path.is_dir():
        raise HeadwaterError(f"can't export to {path}: it is a folder; name a file in it")
    if not path.parent.is_dir():
        raise HeadwaterError(f"can't export to {path}: there is no folder {path.parent}")
    return path


@contextmanager
def workspace(beside: Path | None) -> Iterator[Path]:
    """A folder for what an export puts aside, on the disk that has to take the export itself."""
    parent = None if beside is None else beside.parent
    try:
        folder = Path(tempfile.mkdtemp(prefix=".headwater-export-", dir=parent))
    except OSError as error:
        raise _failed(parent or Path(tempfile.gettempdir()), error) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def opened(to: Target, path: Path | None, folder: Path) -> Iterator[IO[bytes]]:
    """What to write to; a file is put into its place once it is written whole."""
    if path is None:
        assert not isinstance(to, str | os.PathLike)
        yield to
        return
    fresh = folder / "export"
    try:
        with open(fresh, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except OSError as error:
        raise _failed(path, error) from error


def _failed(path: Path, error: OSError) -> HeadwaterError:
    return HeadwaterError(f"can't export to {path}: {error.strerror or error}")
