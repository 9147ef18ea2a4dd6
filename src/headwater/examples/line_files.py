"""Files of lines, made by the million: columns of text as files of equal weight."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import HeadwaterError
from headwater.examples.stream import START

if TYPE_CHECKING:
    from headwater.examples.stream import Ints


class LineFiles:
    """Writes lines to so many files of equal weight in a new folder; each appears complete."""

    def __init__(self, path: str | os.PathLike[str], name: str, files: int, weight: int) -> None:
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise HeadwaterError(f"{folder} is not empty: generate {name} into a new folder")
        self._folder, self._name, self._files, self._weight = folder, name, files, weight
        self._sofar, self._opened = 0, self._open(0)
        self.done: list[Path] = []
        self.bytes = 0

    def write(self, lines: pa.StringArray, weights: Ints) -> None:
        """Writes lines that weigh so much of the whole, each."""
        if not len(lines):
            return
        before = self._sofar + np.cumsum(weights) - weights
        numbers = before * self._files // self._weight
        self._sofar += int(weights.sum())
        bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(lines)]
        for begin, end in pairwise(bounds):
            while len(self.done) < numbers[begin]:
                self._publish()
                self._opened = self._open(len(self.done))
            whole = pa.ListArray.from_arrays(pa.array([begin, end], pa.int32()), lines)
            self._opened.write(pc.binary_join(whole, "\n")[0].as_buffer())
            self._opened.write(b"\n")

    def close(self, last: str) -> None:
        """Writes the last line and publishes what is left."""
        self._opened.write(last.encode())
        self._publish()

    def __enter__(self) -> LineFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def _open(self, number: int) -> IO[bytes]:
        return (self._folder / f".{number:05d}.writing").open("wb")

    def _publish(self) -> None:
        self.bytes += self._opened.tell()
        self._opened.close()
        number = len(self.done)
        hidden = self._folder / f".{number:05d}.writing"
        final = self._folder / f"{self._name}-{number:05d}.jsonl"
        os.utime(hidden, (START + number, START + number))
        self.done.append(hidden.replace(final))
