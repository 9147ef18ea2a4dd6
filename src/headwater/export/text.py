"""Text by the column: whole Arrow arrays are joined and escaped, not row after row."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    Piece: TypeAlias = "pa.Array | str"


def joined(*pieces: Piece) -> pa.Array:
    """Texts put together row by row; null where a piece is null.

    >>> joined("<", pa.array(["a", None]), ">").to_pylist()
    ['<a>', None]
    """
    return pc.binary_join_element_wise(*pieces, "")


def optional(*pieces: Piece) -> pa.Array:
    """Texts put together row by row; nothing where a piece is null.

    >>> optional(", x=", pa.array(["1", None])).to_pylist()
    [', x=1', '']
    """
    return joined(*pieces).fill_null("")


def characters(texts: pa.Array) -> memoryview:
    """All texts of an array, one after the other, as they lie in memory: none may be null."""
    _, offsets, data = texts.buffers()
    if data is None:
        return memoryview(b"")
    ends = np.frombuffer(offsets, np.int32)
    first, last = ends[texts.offset], ends[texts.offset + len(texts)]
    return memoryview(data)[first:last]


def replaced(texts: pa.Array, odd: str, spelled: Callable[[str], str]) -> pa.Array:
    """The texts, those in which a pattern is found spelled in another way."""
    found = pc.match_substring_regex(texts, odd)
    if not pc.any(found).as_py():
        return texts
    found = found.fill_null(False)
    others = [spelled(text) for text in texts.filter(found).to_pylist()]
    return pc.replace_with_mask(texts, found, pa.array(others, pa.string()))


def json_text(text: str) -> str:
    r"""Text as it stands between the quotes of JSON.

    >>> json_text('a "b"\n')
    'a \\"b\\"\\n'
    """
    return json.dumps(text, ensure_ascii=False)[1:-1]


def json_texts(texts: pa.Array) -> pa.Array:
    """Texts as they stand between the quotes of JSON."""
    return replaced(texts, r'[\x00-\x1f"\\]', json_text)


def xml_text(text: str) -> str:
    """Text as it stands in XML; characters that XML can't hold become U+FFFD.

    >>> xml_text("a < b & c\\x00")
    'a &lt; b &amp; c\ufffd'
    """
    text = _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text).replace("&", "&amp;")
    text = text.replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    # A parser would make a line feed of it.
    return text.replace("\r", "&#13;")


def xml_texts(texts: pa.Array) -> pa.Array:
    """Texts as they stand in XML."""
    return replaced(texts, r'[\x00-\x08\x0b-\x1f&<>"]|\x{FFFE}|\x{FFFF}', xml_text)


_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
