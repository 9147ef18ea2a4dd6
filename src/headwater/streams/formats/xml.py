"""Events as XML documents, one after the other, each beginning on a line of its own."""

from __future__ import annotations

import re
from typing import IO, TYPE_CHECKING, Any

from headwater.streams.binding import schema as bound_schema
from headwater.streams.errors import StreamError
from headwater.streams.formats.base import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from headwater.streams.binding import Binding

_LARGEST = 64 << 20
"""Bytes of a document: more are taken for one that never ends."""


class Xml:
    """XML documents; without bindings a column is the child or attribute of the root so named."""

    def __init__(
        self, file: IO[bytes], name: str, bindings: Sequence[Binding], schema: pa.Schema | None
    ) -> None:
        from lxml import etree

        self._etree = etree
        self._file, self._name, self._bindings = file, name, list(bindings)
        paths = [(binding.name, binding.path) for binding in bindings]
        if not paths:
            if schema is None:
                raise StreamError(
                    f"{name} is XML: bind its properties, as in 'lat := /radar/lat : NUMBER'"
                )
            paths = [(column, f"/*/{column} | /*/@{column}") for column in schema.names]
        self._paths = [(column, self._compiled(path)) for column, path in paths]

    def schema(self, sample: Sequence[Record]) -> pa.Schema | None:
        """The schema of the bindings."""
        return bound_schema(self._bindings) if self._bindings else None

    def records(self) -> Iterator[Record]:
        """Every document."""
        for number, text, reason in self._documents():
            where = f"{self._name}:{number}"
            if reason:
                yield Record(where, text, None, reason)
                continue
            # No entities, no network: events come from anywhere.
            parser = self._etree.XMLParser(resolve_entities=False, no_network=True)
            try:
                root = self._etree.fromstring(text, parser)
                row = {column: _value(path(root)) for column, path in self._paths}
            except self._etree.LxmlError as error:
                yield Record(where, text, None, f"not XML: {error}")
                continue
            yield Record(where, text, row)

    def _documents(self) -> Iterator[tuple[int, bytes, str]]:
        """The text of each document and the number of its first line.

        A document ends with its root's end tag. One that is broken ends where the next of its name
        begins, so that it takes no other with it.
        """
        lines: list[bytes] = []
        first, root, size = 0, b"", 0
        for number, line in enumerate(self._file, 1):
            stripped = line.strip()
            if not stripped:
                continue
            begins = _root(stripped)
            again = stripped.startswith(b"<?xml") or (root and begins == root)
            if lines and root and again:
                yield first, b"".join(lines), "not XML: its root element does not end"
                lines, root, size = [], b"", 0
            if not lines:
                first = number
            lines.append(line)
            size += len(line)
            root = root or begins
            if root and (_ends(stripped, root) or size > _LARGEST):
                reason = "" if size <= _LARGEST else f"larger than {_LARGEST:,} bytes"
                yield first, b"".join(lines), reason
                lines, root, size = [], b"", 0
        if lines:
            yield first, b"".join(lines), ""

    def _compiled(self, path: str) -> Any:
        try:
            return self._etree.XPath(path)
        except self._etree.XPathError as error:
            raise StreamError(f"path {path!r} is not XPath: {error}") from error


def _root(line: bytes) -> bytes:
    """The name of the first element that a line opens, behind what stands before documents."""
    found = re.match(rb"(?:<[?!][^>]*>\s*)*<([^\s/>?!]+)", line)
    return found[1] if found else b""


def _ends(line: bytes, root: bytes) -> bool:
    """Whether a line ends a document of this root."""
    if line.endswith(b"/>") and line.count(b"<") - line.count(b"<?") - line.count(b"<!") == 1:
        return _root(line) == root
    return re.search(rb"</" + re.escape(root) + rb"\s*>$", line) is not None


def _value(found: Any) -> Any:
    """What XPath found, as a value: a number, a truth or a text; of several elements the first."""
    if isinstance(found, list):
        if not found:
            return None
        found = found[0]
    if isinstance(found, bool | float):
        return found
    text = found if isinstance(found, str) else "".join(found.itertext())
    return str(text).strip() or None
