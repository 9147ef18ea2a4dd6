"""Where the shards of a live graph have their state: the names of its files, batch by batch."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from headwater.errors import RunError
from headwater.store.lake.place import OWN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.store.lake.place import Place


@dataclass(frozen=True, slots=True)
class State:
    """What the graph's shards have left: the files of each, by its number."""

    shards: int
    records: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Runs of a shard of records, the oldest first."""
    sessions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The file of a shard of session keys."""
    waiting: int = 0
    """Records that a later watermark may let go."""

    def files(self) -> set[str]:
        """All files."""
        return {file for kind in (self.records, self.sessions) for f in kind.values() for file in f}


class Folder:
    """The folder of a flow's live graph in a lake."""

    def __init__(self, place: Place, flow: str) -> None:
        self._filesystem, root = place.filesystem()
        self.name = f"{OWN}/live/{flow}"
        self._path = f"{root}/{self.name}"

    def read(self, seq: int | None, shards: int) -> State:
        """The state after a batch of the store, or before the first; what else lies there goes."""
        state = State(shards)
        if seq is not None:
            try:
                with self._filesystem.open_input_stream(self._note(seq)) as file:
                    told = json.loads(file.read())
            except FileNotFoundError as error:
                raise RunError(
                    f"the live graph's state after batch {seq} of the lake is missing "
                    f"({self.name}); start the flow with another store and checkpoint"
                ) from error
            by_shard = {
                kind: {shard: tuple(files) for shard, files in told[kind].items()}
                for kind in ("records", "sessions")
            }
            state = State(told["shards"], waiting=told["waiting"], **by_shard)
        self._clear(state.files() | ({f"{seq}.json"} if seq is not None else set()))
        return state

    def write(self, seq: int, state: State) -> None:
        """Note down the state after a batch that is about to be committed."""
        self._filesystem.create_dir(self._path, recursive=True)
        with self._filesystem.open_output_stream(self._note(seq)) as file:
            file.write(json.dumps(asdict(state)).encode())

    def remove(self, files: Iterable[str]) -> None:
        """Remove files of the folder."""
        for file in files:
            self._filesystem.delete_file(f"{self._path}/{file}")

    def forget(self, seq: int) -> None:
        """Remove the note of a batch, if there is one."""
        if self._filesystem.get_file_info(self._note(seq)).is_file:
            self._filesystem.delete_file(self._note(seq))

    def _note(self, seq: int) -> str:
        return f"{self._path}/{seq}.json"

    def _clear(self, known: set[str]) -> None:
        """Remove what batches that were never committed have left."""
        from pyarrow import fs

        chosen = fs.FileSelector(self._path, allow_not_found=True, recursive=True)
        for info in self._filesystem.get_file_info(chosen):
            if info.is_file and info.path.removeprefix(f"{self._path}/") not in known:
                self._filesystem.delete_file(info.path)
