"""Names as PROV's qualified names: what a name may hold, and the namespaces it needs.

A name is `prefix:local`. Headwater's own, `hw:<flow>/<source-or-sink>/<id>`, are such names as they
are: their namespace is `hw:`, so that the full name reads the same. A foreign name keeps what
stands before its first colon as a prefix, whose namespace is that same text; a name without one is
in the default namespace. What no qualified name can hold is percent-encoded.
"""

from __future__ import annotations

import re
from urllib.parse import quote

import pyarrow as pa

from headwater.export.text import replaced

HW, COLUMN = "hw", "column"
NAMESPACES = {HW: "hw:", COLUMN: "hw:column/"}
"""Of records, results, runs and their attributes; and of the rows' own columns."""
DEFAULT = "hw:entity/"

_MOST_PREFIXES = 1_000
_KNOWN = frozenset({"prov", "xsd"})
"""Every document has these."""
_TAKEN = frozenset({COLUMN, "default", "xsi"})

_LETTERS = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_MARKS = "\u00b7\u0300-\u036f\u203f\u2040"
_META = r"='(),:;\[\]"
"""In PROV-N these take a backslash."""
_PREFIX = re.compile(r"[A-Za-z](?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?")
_ODD = re.compile(
    rf"^[{_MARKS}]|%(?![0-9A-Fa-f]{{2}})|[^%{_LETTERS}{_MARKS}0-9_.\-/@~&+*?#$!{_META}]"
)
_ESCAPED = re.compile(rf"^[.\-]|\.$|[{_META}]")
_NEEDS_ESCAPE = r"[='(),;\[\]]|\.$|:[.\-]|:[^:]*:|^[.\-]"


def local(text: str) -> str:
    """Text as the local part of a name.

    >>> local("a b/%20/%"), local("größe")
    ('a%20b/%20/%25', 'größe')
    """
    return _ODD.sub(lambda odd: quote(odd[0], safe=""), text)


def escaped(name: str) -> str:
    r"""A name as PROV-N writes it.

    >>> escaped("hdfs://node/a(1)"), escaped("-7")
    ('hdfs://node/a\\(1\\)', '\\-7')
    """
    head, colon, rest = name.partition(":") if ":" in name else ("", "", name)
    return head + colon + _ESCAPED.sub(lambda odd: "\\" + odd[0], rest)


def all_escaped(names: pa.Array) -> pa.Array:
    """Names as PROV-N writes them."""
    return replaced(names, _NEEDS_ESCAPE, escaped)


class Prefixes:
    """The prefixes of the foreign names that it was asked about; a name has one form for good."""

    def __init__(self) -> None:
        self._declared: dict[str, str] = {}
        self._default = False

    @property
    def namespaces(self) -> dict[str, str]:
        """By prefix, the namespaces that a document declares."""
        return {**NAMESPACES, **self._declared}

    @property
    def default(self) -> str | None:
        """The namespace of names without a prefix, if there was one."""
        return DEFAULT if self._default else None

    def qualified(self, name: str) -> str:
        """A name as a qualified name.

        >>> prefixes = Prefixes()
        >>> [prefixes.qualified(n) for n in ("in-7", "hdfs://n/a b", "hw:f/s/7", "12:30")]
        ['in-7', 'hdfs://n/a%20b', 'hw:f/s/7', '12%3A30']
        >>> prefixes.default, sorted(prefixes.namespaces)
        ('hw:entity/', ['column', 'hdfs', 'hw'])
        """
        prefix, colon, rest = name.partition(":")
        if colon and rest and self._has(prefix):
            return f"{prefix}:{local(rest)}"
        self._default = True
        return local(name).replace(":", "%3A")

    def all_qualified(self, names: pa.Array) -> pa.Array:
        """Names as qualified names."""
        return pa.array([self.qualified(name) for name in names.to_pylist()], pa.string())

    def _has(self, prefix: str) -> bool:
        if prefix in _KNOWN or prefix == HW or prefix in self._declared:
            return True
        # Many prefixes are none, but part of a name: no document could begin with all of them.
        if prefix in _TAKEN or len(self._declared) == _MOST_PREFIXES:
            return False
        if _PREFIX.fullmatch(prefix) is None:
            return False
        self._declared[prefix] = f"{prefix}:"
        return True
