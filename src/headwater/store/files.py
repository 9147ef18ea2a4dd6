"""Files behind positional ids: which file a record's id means."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from headwater.errors import IdCollision
from headwater.lowering.identity import FILE_BITS, ROW_BITS

if TYPE_CHECKING:
    from collections.abc import Iterable


def file_key(uri: str) -> int:
    """The number of a file in positional ids, as `headwater.lowering.identity` computes it."""
    digest: int = xxhash.xxh64_intdigest(uri.encode(), seed=42)
    return digest & ((1 << FILE_BITS) - 1)


def _uris(path: str) -> set[str]:
    """The ways in which Spark may write a local file's address."""
    return {f"{scheme}{form}" for scheme in ("file:", "file://") for form in (path, quote(path))}


class Files:
    """The files of one source, by their number, as their records are seen."""

    def __init__(self, source: str, path: str) -> None:
        self.source = source
        self.path = path
        self.known: dict[int, str] = {}
        self.told: set[int] = set()

    def new(self, ids: Iterable[pa.ChunkedArray | pa.Array]) -> dict[int, str]:
        """The files, not told before, that some record ids point into."""
        keys: set[int] = set()
        for column in ids:
            flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            flat = flat.flatten() if pa.types.is_list(flat.type) else flat
            keys.update(pc.unique(pc.shift_right(flat, ROW_BITS)).to_pylist())
        return self.numbered(keys)

    def numbered(self, keys: set[int]) -> dict[int, str]:
        """Those of the files with these numbers that were not told before."""
        keys = keys - {None, *self.told}
        if not keys <= self.known.keys():
            self._list()
        self.told |= keys
        return {key: self.known[key] for key in keys if key in self.known}

    def _list(self) -> None:
        for found in self._paths():
            for uri in _uris(os.path.abspath(found)):
                other = self.known.setdefault(file_key(uri), found)
                if other != found:
                    raise IdCollision(
                        f"source {self.source!r}: files {other} and {found} get the same number; "
                        "rename one, or give id= columns"
                    )

    def _paths(self) -> list[str]:
        if os.path.isdir(self.path):
            return sorted(str(p) for p in Path(self.path).rglob("*") if p.is_file())
        return sorted(p for p in glob.glob(self.path) if os.path.isfile(p))
