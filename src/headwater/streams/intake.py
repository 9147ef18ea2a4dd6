"""Publishing a file: read in pieces, bad events aside as dead letters, at a rate if asked."""

from __future__ import annotations

import itertools
import sys
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from headwater.streams.errors import StreamError
from headwater.streams.formats import FORMATS, format_of
from headwater.streams.letters import Letter, shown
from headwater.streams.log import Key
from headwater.streams.sifting import sift

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from headwater.streams.binding import Binding
    from headwater.streams.declaration import Producer
    from headwater.streams.formats.base import Record
    from headwater.streams.registry import Streams

_PIECE = 10_000
_SAMPLE = 1_000


@dataclass(slots=True)
class Intake:
    """What publishing a file has come to so far."""

    stream: str
    created: bool = False
    published: int = 0
    rejected: int = 0
    skipped: int = 0
    """Events that were there already, under the same key."""
    reasons: Counter[str] = field(default_factory=Counter)
    """The most frequent reasons are the first to look at."""


def publish_file(
    streams: Streams,
    name: str,
    file: str | Path,
    *,
    format: str | None = None,
    bindings: Sequence[Binding] = (),
    schema: str | pa.Schema | None = None,
    event_time: str | None = None,
    id: str | None = None,
    create: bool = False,
    producer: Producer | None = None,
    consent: bool = False,
    rate: float | None = None,
    key: str | None = None,
    progress: Callable[[Intake], None] = lambda _: None,
) -> Intake:
    """Publish the events of a file (`-` is standard input) to a stream.

    With `create` the stream is declared, by the schema given or the one that the file shows. With
    `rate`, at most that many events are published per second. Under a `key`, what a former call
    published of the file is skipped: one that was killed can be repeated.
    """
    if rate is not None and rate <= 0:
        raise StreamError(f"rate={rate} is not a number of events per second")
    for what, value in (("schema", schema), ("event_time", event_time), ("id", id)):
        if value is not None and not create:
            raise StreamError(f"{what} is of a new stream; leave it out, or create one (--create)")
    chosen = format_of(str(file), format)
    known = schema_of(schema) if create else streams.declaration(name).arrow
    done = Intake(name)
    with _opened(str(file)) as source:
        reader = FORMATS[chosen](source, str(file), bindings, known)
        records = reader.records()
        if create:
            sample = list(itertools.islice(records, _SAMPLE))
            found = known if known is not None else reader.schema(sample)
            if found is None:
                raise StreamError(f"{file} has no event that a schema could be told by; give one")
            if known is None:
                found = _timed(found, event_time)
            streams.create(name, found, event_time=event_time, id=id, producer=producer)
            done.created = True
            records = itertools.chain(sample, records)
        arrow = streams.declaration(name).arrow
        already = -1 if key is None else streams.log(name).number(key)
        already = -1 if already is None else already
        number = -1  # of the last record that was read
        for piece in _paced(records, rate):
            first, number = number + 1, number + len(piece)
            if number <= already:
                done.skipped += len(piece)
                continue
            fresh = piece[max(0, already + 1 - first) :]
            done.skipped += len(piece) - len(fresh)
            named = None if key is None else Key(key, number)
            table, letters = _sorted_out(fresh, arrow)
            streams.letters(name).write(letters, named)
            receipt = streams.publish(name, table, key=named, producer=producer, consent=consent)
            done.published += receipt.events
            done.rejected += len(letters)
            done.reasons.update(letter.reason for letter in letters)
            progress(done)
    return done


def _timed(schema: pa.Schema, event_time: str | None) -> pa.Schema:
    """A schema that was guessed, with times where they are said to be."""
    import pyarrow as pa

    place = schema.get_field_index(event_time or "")
    if place < 0 or not pa.types.is_string(schema.field(place).type):
        return schema
    return schema.set(place, pa.field(event_time, pa.timestamp("us", "UTC")))


def schema_of(given: str | pa.Schema | None) -> pa.Schema | None:
    """A schema as given: text or Arrow."""
    from headwater.streams.schema import parse

    return parse(given) if isinstance(given, str) else given


def _sorted_out(piece: Sequence[Record], schema: pa.Schema) -> tuple[pa.Table, list[Letter]]:
    good = [record for record in piece if record.row is not None]
    table, reasons = sift([record.row for record in good if record.row is not None], schema)
    letters = [
        Letter(record.reason, record.where, shown(record.event))
        for record in piece
        if record.row is None
    ]
    letters += [
        Letter(reason, good[place].where, shown(good[place].event))
        for place, reason in reasons.items()
    ]
    return table, letters


def _paced(records: Iterable[Record], rate: float | None) -> Iterator[list[Record]]:
    """Records in pieces, no faster than a rate: about ten pieces a second."""
    size = _PIECE if rate is None else max(1, min(_PIECE, round(rate / 10)))
    stream = iter(records)
    began, given = time.monotonic(), 0
    while piece := list(itertools.islice(stream, size)):
        yield piece
        given += len(piece)
        if rate is not None:
            time.sleep(max(0.0, began + given / rate - time.monotonic()))


@contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    if file == "-":
        yield sys.stdin.buffer
        return
    with ExitStack() as stack:
        try:
            source = stack.enter_context(Path(file).open("rb"))
        except OSError as error:
            raise StreamError(f"{file} can't be read: {error.strerror}") from error
        yield source
