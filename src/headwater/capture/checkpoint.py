"""The checkpoint beside the store: bound to one flow and one store, and read for watermarks."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from headwater.errors import RunError

_BINDING = "headwater.json"
LAST_WATERMARK = 253_402_300_799_000
"""The watermark of a flow's last batch: the end of the year 9999, in milliseconds."""


UNREADABLE = (ValueError, IndexError, KeyError, TypeError, AttributeError)
"""What reading a damaged file of a checkpoint raises."""


def damaged(file: Path) -> RunError:
    """The error that a file of a checkpoint can't be read."""
    return RunError(
        f"{file} is damaged; put a copy of its checkpoint back, or start with a new checkpoint and "
        "a new store"
    )


@dataclass(frozen=True, slots=True)
class Binding:
    """Which flow and store a checkpoint belongs to; `query_id` names its batches in the store."""

    flow: str
    store_id: str
    query_id: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A streaming query's checkpoint directory."""

    path: Path

    @classmethod
    def at(cls, path: str) -> Checkpoint:
        """The checkpoint in a local directory."""
        if "://" in path and not path.startswith("file:"):
            raise RunError(f"checkpoint {path!r}: only local directories work with this store")
        return cls(Path(os.path.abspath(path.removeprefix("file://"))))

    def bind(self, flow: str, store_id: str, bound: str | None, last_batch: int | None) -> Binding:
        """This checkpoint's binding, made now if it is new; refused if it is another's.

        `bound` is the query id that the store has for this flow, `last_batch` the newest batch
        that it holds of it.
        """
        binding = self._read()
        if binding is None:
            return self._bind_new(flow, store_id, bound, last_batch)
        if binding.flow != flow:
            raise RunError(
                f"checkpoint {self.path} belongs to flow {binding.flow!r}, not {flow!r}; "
                "give each flow a checkpoint of its own"
            )
        if binding.store_id != store_id or bound != binding.query_id:
            raise RunError(
                f"checkpoint {self.path} belongs to another store (flow {flow!r}); start with the "
                "store it was made with, or with a new checkpoint and a new store"
            )
        self._require_agreement(last_batch)
        return binding

    def _bind_new(
        self, flow: str, store_id: str, bound: str | None, last_batch: int | None
    ) -> Binding:
        if last_batch is not None:
            raise RunError(
                f"checkpoint {self.path} is gone but its store holds {last_batch + 1} batches of "
                f"flow {flow!r}; put the checkpoint back, or start with a new store"
            )
        if self.path.exists() and any(self.path.iterdir()):
            raise RunError(
                f"checkpoint {self.path} belongs to a query that Headwater did not start; "
                "give an empty directory"
            )
        return Binding(flow, store_id, bound or uuid.uuid4().hex)

    def tidy(self) -> None:
        """Remove what a process that was killed in planning its first batch has left.

        Spark refuses to begin with folders that are not empty, and what is in them is of no batch.
        """
        if self._newest("offsets") < 0 and self._newest("commits") < 0:
            for name in ("offsets", "commits", "state"):
                shutil.rmtree(self.path / name, ignore_errors=True)

    def write(self, binding: Binding) -> None:
        """Keep the binding in the checkpoint, once the store has it."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            temporary = self.path / f".{_BINDING}.tmp"
            temporary.write_text(json.dumps(asdict(binding)))
            temporary.replace(self.path / _BINDING)
        except OSError as error:
            raise RunError(
                f"checkpoint {self.path} can't be written ({error.strerror}); choose another place"
            ) from error

    def _read(self) -> Binding | None:
        file = self.path / _BINDING
        if not file.exists():
            return None
        try:
            return Binding(**json.loads(file.read_text()))
        except UNREADABLE as error:
            raise damaged(file) from error

    def _require_agreement(self, last_batch: int | None) -> None:
        """The store is at the checkpoint's last batch, or one ahead of its commit."""
        committed = self._newest("commits")
        planned = self._newest("offsets")
        held = -1 if last_batch is None else last_batch
        if held < committed:
            raise RunError(
                f"the store holds batches up to {held}, its checkpoint {self.path} up to "
                f"{committed}: the store is older; put the matching one back, or start both anew"
            )
        if held > planned:
            raise RunError(
                f"the store holds batches up to {held}, its checkpoint {self.path} only up to "
                f"{planned}: the checkpoint is older or was emptied; put the matching one back, or "
                "start both anew"
            )

    def _newest(self, log: str) -> int:
        directory = self.path / log
        names = os.listdir(directory) if directory.exists() else []
        return max((int(n) for n in names if n.isdigit()), default=-1)

    @property
    def has_planned(self) -> bool:
        """Whether a batch is planned that was not done: the next start runs it first."""
        return self._newest("offsets") > self._newest("commits")

    def plan_batch(self, watermark: int = LAST_WATERMARK) -> None:
        """Have the next start run one batch without data, with a watermark (ms) of our choice.

        Spark runs a batch that its log has planned but not committed just as it was planned.
        """
        planned = self._newest("offsets")
        if planned < 0:
            raise RunError(f"checkpoint {self.path} has no batch yet: there is nothing to finish")
        file = self.path / "offsets" / str(planned)
        try:
            version, metadata, *offsets = file.read_text().splitlines()
            changed = {**json.loads(metadata), "batchWatermarkMs": watermark}
        except UNREADABLE as error:
            raise damaged(file) from error
        text = "\n".join([version, json.dumps(changed), *offsets])
        temporary = self.path / f".{planned + 1}.last"
        temporary.write_text(text)
        temporary.replace(self.path / "offsets" / str(planned + 1))

    def is_finishing(self) -> bool:
        """Whether the batch that runs next is the flow's last."""
        return self.has_planned and self._watermark(self._newest("offsets")) == LAST_WATERMARK

    def _watermark(self, batch: int) -> int:
        file = self.path / "offsets" / str(batch)
        try:
            return int(json.loads(file.read_text().splitlines()[1]).get("batchWatermarkMs", 0))
        except UNREADABLE as error:
            raise damaged(file) from error

    def watermark(self, batch: int) -> datetime | None:
        """The watermark with which a batch runs, as Spark wrote it before the batch."""
        milliseconds = self._watermark(batch)
        if milliseconds <= 0:
            return None
        return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)
