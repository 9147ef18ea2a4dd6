"""Batches that are written but not committed: noted down, and brought to an end by a restart."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from headwater.store.lake.place import OWN
from headwater.store.lake.tables import Added

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from headwater.store.lake.place import Place

FOLDER = "prepared"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A batch whose files are there: all that is left is to add them to their tables."""

    seq: int
    query_id: str
    batch: int
    watermark: str | None
    last: bool
    counts: Mapping[str, int]
    """`results`, `edges`, `records`."""
    added: tuple[Added, ...]
    rows: Mapping[str, list[dict[str, Any]]]
    """Rows of small relations, by relation."""


class Notes:
    """The notes of a lake."""

    def __init__(self, place: Place) -> None:
        self._filesystem, root = place.filesystem()
        self._folder = f"{root}/{OWN}/{FOLDER}"

    def write(self, prepared: Prepared) -> None:
        """Note a batch down, all of it or nothing."""
        self._filesystem.create_dir(self._folder, recursive=True)
        path, fresh = self._path(prepared), f"{self._folder}/{prepared.seq}.fresh"
        with self._filesystem.open_output_stream(fresh) as file:
            file.write(json.dumps(asdict(prepared)).encode())
        self._filesystem.move(fresh, path)

    def remove(self, prepared: Prepared) -> None:
        """Forget a batch that is committed."""
        self._filesystem.delete_file(self._path(prepared))

    def all(self) -> Iterator[Prepared]:
        """The batches that wait, in their order."""
        from pyarrow import fs

        found = self._filesystem.get_file_info(fs.FileSelector(self._folder, allow_not_found=True))
        names = [info.path for info in found if info.path.endswith(".json")]
        for path in sorted(names, key=lambda one: int(one.rsplit("/", 1)[1].split(".")[0])):
            with self._filesystem.open_input_stream(path) as file:
                told = json.loads(file.read())
            yield Prepared(**{**told, "added": tuple(Added(**one) for one in told["added"])})

    def _path(self, prepared: Prepared) -> str:
        return f"{self._folder}/{prepared.seq}.json"
