"""The formats that events come in: what reads each, and how one is known by a file's name."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from headwater.streams.errors import StreamError
from headwater.streams.formats.documents import Avro, JsonLines, Parquet
from headwater.streams.formats.tabular import Csv
from headwater.streams.formats.xml import Xml

if TYPE_CHECKING:
    from headwater.streams.formats.base import Make

FORMATS: dict[str, Make] = {
    "json": JsonLines,
    "csv": Csv,
    "xml": Xml,
    "avro": Avro,
    "parquet": Parquet,
}

_ENDINGS = {"jsonl": "json", "ndjson": "json"}


def format_of(name: str, given: str | None) -> str:
    """The format that is given, or that a file's name tells.

    >>> format_of("scans.jsonl", None), format_of("-", "xml")
    ('json', 'xml')
    """
    ending = PurePath(name).suffix.lstrip(".").lower()
    found = given or _ENDINGS.get(ending, ending)
    if found in FORMATS:
        return found
    known = ", ".join(FORMATS)
    if given is None:
        raise StreamError(f"the format of {name} is not known by its name; give one of {known}")
    raise StreamError(f"format {given!r} is none of {known}")
