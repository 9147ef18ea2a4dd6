"""What is read from a file: rows, and where each came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from headwater.streams.binding import Binding


@dataclass(frozen=True, slots=True)
class Record:
    """One event of a file: where it is, its text, and its row or why it has none."""

    where: str
    event: Any
    row: dict[str, Any] | None
    reason: str = ""


class Reader(Protocol):
    """Reads the events of a file in one format; what is wrong with one ends no other."""

    def schema(self, sample: Sequence[Record]) -> pa.Schema | None:
        """What the schema seems to be, by the file itself or its first records."""

    def records(self) -> Iterator[Record]:
        """Every event, in order."""


Make: TypeAlias = "Callable[[IO[bytes], str, Sequence[Binding], pa.Schema | None], Reader]"
"""Makes a reader of a file, its name, its bindings and the stream's schema, if known."""
