"""Where a lake is: `delta:` and a folder, or the URL of an object store."""

from __future__ import annotations

import importlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.errors import StoreError

if TYPE_CHECKING:
    import pyarrow.fs as pafs

PREFIX = "delta:"
OWN = "_headwater"
"""The folder of a lake that is no table."""
_URL = r"([A-Za-z][A-Za-z0-9+.-]+):/+"


def is_lake(store: str | os.PathLike[str]) -> bool:
    """Whether a store is said to be a lake.

    >>> is_lake("delta:/data/prov"), is_lake("prov/")
    (True, False)
    """
    return os.fspath(store).startswith(PREFIX)


@dataclass(frozen=True, slots=True)
class Place:
    """The root of a lake, as Delta and Arrow take it."""

    root: str

    @classmethod
    def of(cls, store: str | os.PathLike[str]) -> Place:
        """The place that a `delta:` address means."""
        told = os.fspath(store).removeprefix(PREFIX)
        if not told:
            raise StoreError(f"{store!r} names no lake; write delta: and a folder or a URL")
        if url := re.match(_URL, told):
            # A path of the command line has lost one of its slashes.
            return cls(f"{url[1]}://{told[url.end() :].rstrip('/')}")
        return cls(os.path.realpath(told))

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of a file system."""
        return "://" not in self.root

    @property
    def path(self) -> Path:
        """The folder; of a lake elsewhere, its URL as if it were one."""
        return Path(self.root)

    def table(self, relation: str) -> str:
        """Where the table of a relation is."""
        return f"{self.root}/{relation}"

    def filesystem(self) -> tuple[pafs.FileSystem, str]:
        """Arrow's file system, and the root in it."""
        from pyarrow import fs

        if self.is_local:
            return fs.LocalFileSystem(), self.root
        found: tuple[pafs.FileSystem, str] = fs.FileSystem.from_uri(self.root)
        return found

    def options(self) -> dict[str, str]:
        """What Delta's library is told of the storage, beside what it finds in the environment.

        It takes endpoint, region and credentials from there as Arrow does, but an address without
        encryption only if it is told to.
        """
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
        if self.root.startswith("s3://") and endpoint.startswith("http://"):
            return {"AWS_ALLOW_HTTP": "true"}
        return {}

    def __str__(self) -> str:
        return f"{PREFIX}{self.root}"


def require_folder(store: str | os.PathLike[str]) -> None:
    """Refuse the address of a lake where only a store in a file will do."""
    if is_lake(store):
        raise StoreError(f"{store}: a lake can't be used for this yet; give a store's folder")


def is_lake_folder(store: Path) -> bool:
    """Whether a folder is a lake."""
    return (store / "meta" / "_delta_log").is_dir()


def lake_at(store: Path) -> Place | None:
    """The lake that a reader says it is at, if it is one."""
    if re.match(_URL, str(store)) or is_lake_folder(store):
        return Place.of(str(store))
    return None


def refuse_lake(store: Path) -> None:
    """Refuse a folder that is a lake where a store in one file is meant."""
    if is_lake_folder(store):
        raise StoreError(f"{store} is a lake; write {PREFIX}{store} for it")


def library() -> Any:
    """The `deltalake` package; without it, how to get it."""
    try:
        return importlib.import_module("deltalake")
    except ImportError as error:
        raise StoreError(
            "a store on Delta Lake needs the package deltalake: pip install 'headwater[delta]'"
        ) from error
