"""What a map-reduce remembers: a line for each thing that was decided or done, in a file.

A line is safe on disk before anything is done that depends on it. So a process that is killed at
any point leaves a journal that says what comes next; a last line that is not whole never was.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from headwater.errors import RunError
from headwater.mapreduce.windows import Member

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.mapreduce.scanning import Seen
    from headwater.mapreduce.windows import Change

FILE = "journal.jsonl"

Status = Literal["taken", "mapped", "failed"]


@dataclass(frozen=True, slots=True)
class Input:
    """A file that was taken: its number, what it was then, and what became of it."""

    number: int
    name: str
    size: int
    modified: int
    """In nanoseconds, as the file system has it."""
    time: int
    """In microseconds: its place in the order of what happened."""
    status: Status = "taken"
    records: int = 0
    letters: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Reduce:
    """A reduce that is decided: its number, its time in microseconds, the files of its window."""

    number: int
    at: int
    files: tuple[int, ...]


@dataclass(slots=True)
class State:
    """Everything that the journal says."""

    inputs: dict[int, Input] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    members: tuple[Member, ...] = ()
    """The window after the last reduce that is decided."""
    clock: int | None = None
    """The time of that reduce."""
    placed: int = -1
    """The last file that came into the window, or was passed over as it can't be read."""
    reduces: int = 0
    """How many reduces are decided."""
    done: int = 0
    """How many of them are done."""
    waiting: dict[int, Reduce] = field(default_factory=dict)
    results: int = 0
    letters: int = 0
    ended: bool = False

    @property
    def latest(self) -> int | None:
        """The latest time of what happened so far: no file comes before it."""
        times = [] if self.clock is None else [self.clock]
        if self.inputs:
            times.append(self.inputs[len(self.inputs) - 1].time)
        return max(times, default=None)

    def to_map(self) -> list[Input]:
        """Files that were taken and not mapped yet."""
        return [each for each in self.inputs.values() if each.status == "taken"]

    def to_place(self) -> list[Member]:
        """Files whose map outputs have not come into the window, in order, up to one not mapped."""
        found = []
        for number in range(self.placed + 1, len(self.inputs)):
            match self.inputs[number]:
                case Input(status="taken"):
                    break
                case Input(status="mapped", time=time):
                    found.append(Member(number, time))
        return found

    def in_use(self) -> set[int]:
        """Files whose map outputs are still needed."""
        used = {member.file for member in self.members}
        used |= {file for reduce in self.waiting.values() for file in reduce.files}
        return used | {n for n in self.inputs if n > self.placed}

    def apply(self, entry: dict[str, Any]) -> None:
        """Take in one line."""
        match entry:
            case {"take": told}:
                taken = Input(**told)
                self.inputs[taken.number] = taken
                self.names[taken.name] = taken.number
            case {"changed": number, "size": size, "modified": modified}:
                self._settle(number, size=size, modified=modified)
            case {"mapped": number, "records": records, "letters": letters}:
                self._settle(number, status="mapped", records=records, letters=letters)
                self.letters += letters
            case {"failed": number, "reason": reason}:
                self._settle(number, status="failed", reason=reason, letters=1)
                self.letters += 1
            case {"reduce": number, "at": at, "files": files}:
                self.waiting[number] = Reduce(number, at, tuple(files))
                self.members = tuple(Member(f, self.inputs[f].time) for f in files)
                self.placed = max(self.placed, *files) if files else self.placed
                self.reduces, self.clock = number + 1, at
            case {"done": number, "results": results, "letters": letters}:
                del self.waiting[number]
                self.done = number + 1
                self.results += results
                self.letters += letters
            case {"ended": ended}:
                self.ended = ended
            case _:
                raise ValueError(f"{entry} says nothing known")

    def _settle(self, number: int, **told: Any) -> None:
        self.inputs[number] = replace(self.inputs[number], **told)


class Journal:
    """The journal in a folder, and the state that it tells; one process writes it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.state = State()
        folder.mkdir(parents=True, exist_ok=True)
        whole = self._read()
        self._file = self.path.open("ab")
        if self._file.tell() > whole:
            self._file.truncate(whole)

    def take(self, seen: Seen, time: int) -> None:
        """A file is now an input."""
        told = Input(len(self.state.inputs), seen.name, seen.size, seen.modified, time)
        fields = ("number", "name", "size", "modified", "time")
        self._write({"take": {name: asdict(told)[name] for name in fields}})

    def changed(self, number: int, seen: Seen) -> None:
        """A file that was taken for whole was not: it is mapped anew, as it is now."""
        self._write({"changed": number, "size": seen.size, "modified": seen.modified})

    def mapped(self, number: int, records: int, letters: int) -> None:
        """The map output of a file is there."""
        self._write({"mapped": number, "records": records, "letters": letters})

    def failed(self, number: int, reason: str) -> None:
        """A file can't be read or mapped, and is passed over."""
        self._write({"failed": number, "reason": reason})

    def decide(self, change: Change) -> None:
        """A change of the window is to be reduced."""
        files = [member.file for member in change.members]
        self._write({"reduce": self.state.reduces, "at": change.at, "files": files})

    def done(self, number: int, results: int, letters: int) -> None:
        """A reduce's results are in the store and in the stream."""
        self._write({"done": number, "results": results, "letters": letters})

    def ended(self, ended: bool) -> None:
        """The end was asked for, or a new start after it."""
        if self.state.ended != ended:
            self._write({"ended": ended})

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, entry: dict[str, Any]) -> None:
        self._file.write(json.dumps(entry).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.state.apply(entry)

    def _read(self) -> int:
        """Take in every whole line; where the last of them ends."""
        if not self.path.exists():
            return 0
        whole = 0
        with self.path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith(b"\n"):
                    break
                try:
                    self.state.apply(json.loads(line))
                except (ValueError, KeyError, TypeError) as error:
                    raise RunError(
                        f"{self.path}:{number} is damaged ({error}); give another state folder"
                    ) from error
                whole += len(line)
        return whole
