"""Files behind positional ids: which file a record's id means."""

from __future__ import annotations

import fnmatch
import glob
import os
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlparse

import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from headwater.errors import IdCollision

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from headwater.store.catalog import Source

Query = Callable[[str, list[Any]], pa.Table]
FILE_BITS = 31
ROW_BITS = 32
"""An id by place is a file's number and the row in it."""


def file_key(uri: str) -> int:
    """The number of a file in positional ids, as `headwater.lowering.identity` computes it."""
    digest: int = xxhash.xxh64_intdigest(uri.encode(), seed=42)
    return digest & ((1 << FILE_BITS) - 1)


def uri(path: str) -> str:
    """A local file's address as Spark writes it: letters of all alphabets stay as they are.

    >>> uri("/data/day=1/Zürich (old) 100%.parquet")
    'file:/data/day=1/Zürich%20(old)%20100%25.parquet'
    """
    return "file:" + "".join(
        one if ord(one) > 127 and unicodedata.category(one)[0] not in "ZC" else quote(one, _PLAIN)
        for one in path
    )


_PLAIN = "/:@&=+$,;!~*'()"
"""What Java leaves as it is in the path of an address, beside letters, digits and `_-.`."""


def numbered(source: Source, query: Query, keys: Sequence[int] | None = None) -> dict[int, str]:
    """The files of a source with ids by place: all of them, or those with some numbers.

    They are those that the store was told of. A run that carries no ids, as with `intervals` and
    `ancestors`, tells of none: what is missing is looked for among the files that are there now.
    """
    some = "" if keys is None else "AND file_key IN (SELECT unnest(?::BIGINT[]))"
    rows = query(
        f"SELECT file_key, path FROM files WHERE source_no = ? {some}",
        [source.no, *([] if keys is None else [list(keys)])],
    )
    told = {int(row["file_key"]): str(row["path"]) for row in rows.to_pylist()}
    if told.keys() >= set(keys or ()) and (told or keys is not None):
        return told
    definition = source.definition
    found = data_files(str(definition["path"]), definition.get("options") or {}) or ()
    there = {file_key(uri(os.path.abspath(path))): path for path in found}
    return {key: path for key, path in there.items() if keys is None or key in keys} | told


def local(path: str) -> str:
    """A file URI as a plain path."""
    if path.startswith("file:"):
        return unquote(urlparse(path).path)
    return path


def data_files(path: str, options: Mapping[str, Any]) -> list[str] | None:
    """The data files that Spark reads below a path; None where only Spark can tell."""
    if "://" in path and not path.startswith("file:"):
        return None
    given = {key.lower(): str(value) for key, value in options.items()}
    pattern = given.get("pathglobfilter", "*")
    files: list[str] = []
    for place in _glob(Path(local(path))):
        if place.is_file():
            files.append(str(place))
        for folder, folders, names in os.walk(place):
            if "_spark_metadata" in folders:
                return None
            if any("=" in name for name in folders) and not _hidden(folder):
                return None
            folders[:] = sorted(name for name in folders if not _hidden(name))
            if folder != str(place) and given.get("recursivefilelookup") != "true":
                continue
            files += [
                os.path.join(folder, name)
                for name in sorted(names)
                if not _hidden(name) and fnmatch.fnmatch(name, pattern)
            ]
    return files


def _glob(place: Path) -> list[Path]:
    return [Path(found) for found in glob.glob(str(place))]


def _hidden(name: str) -> bool:
    return name.startswith(("_", "."))


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
            other = self.known.setdefault(file_key(uri(os.path.abspath(found))), found)
            if other != found:
                raise IdCollision(
                    f"source {self.source!r}: files {other} and {found} get the same number; "
                    "rename one, or give id= columns"
                )

    def _paths(self) -> list[str]:
        if os.path.isdir(self.path):
            return sorted(str(p) for p in Path(self.path).rglob("*") if p.is_file())
        return sorted(p for p in glob.glob(self.path) if os.path.isfile(p))
