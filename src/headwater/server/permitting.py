"""What flows that come from elsewhere may not have: code, commands, files and calls at will.

Whoever starts the service trusts the files that they deploy themselves. A flow that comes by REST
is somebody else's: it has operators, and SQL that can only compute.
"""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from headwater.compose.frozen import thawed
from headwater.compose.kinds import Function, Job, Service, Sink, Source, Sql, Static
from headwater.compose.violations import CompositionError, Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.compose import Composition, Node
    from headwater.server.settings import Settings

RULE = "permission"
FORMATS = frozenset({"parquet", "csv", "json", "text", "orc", "rate", "rate-micro-batch"})
"""What a source may read without code being allowed: files in the roots, and made-up events."""
CALLS = frozenset({"reflect", "java_method", "try_reflect", "read_files"})
"""Functions of Spark's that run code of the JVM or read files."""
DATA = frozenset({"value", "static", "options", "alert", "path", "target", "stream", "call", "run"})
"""Keys whose texts are never SQL."""
PLACES = ("path", "location", "file", "url", "dir", "archive", "clean", "class")
"""In the names of options: they lead elsewhere, or do more than read."""
HARMLESS = frozenset(
    {"maxfilespertrigger", "maxfileage", "pathglobfilter", "recursivefilelookup"}
    | {"ignoremissingfiles", "ignorecorruptfiles", "latestfirst", "filenameonly"}
)


def require_permitted(composition: Composition, settings: Settings) -> None:
    """Raise `CompositionError` with all that a flow may not have."""
    found = tuple(refusals(composition, settings))
    if found:
        raise CompositionError(map(composition.origin.of, found))


def refusals(composition: Composition, settings: Settings) -> Iterator[Violation]:
    """All that a flow has and may not."""
    for name, node in composition.nodes.items():
        for text in _refused(node, settings):
            yield Violation(RULE, text, node=name)


def code_of(composition: Composition) -> list[str]:
    """The nodes that run Python code or commands."""
    return [name for name, node in composition.nodes.items() if _code(node) is not None]


def _refused(node: Node, settings: Settings) -> Iterator[str]:
    if not settings.allow_code and (what := _code(node)) is not None:
        yield f"{what} is code, which the service takes with --allow-code only"
    if isinstance(node, Source | Static) and node.format is not None:
        yield from _reading(node, settings)
    if isinstance(node, Service) and node.is_url:
        yield from _calling(node.target, settings)
    if isinstance(node, Sink) and node.alert is not None:
        alert = thawed(node.alert)
        if "webhook" in alert:
            yield from _calling(str(alert["webhook"]), settings)
        for address in alert.get("email", ()):
            yield from _mailing(str(address), settings)
    for key, text in _texts(thawed(node.written())):
        if key in DATA:
            continue
        if (wrong := unsafe(text, is_query=isinstance(node, Sql) and key == "query")) is not None:
            yield f"{key}: {wrong}"


def _code(node: Node) -> str | None:
    """What of a node is code."""
    if isinstance(node, Function):
        return f"call: {node.call}"
    if isinstance(node, Service) and not node.is_url:
        return f"target: {node.target}"
    if isinstance(node, Static) and node.call is not None:
        return f"call: {node.call}"
    if isinstance(node, Job):
        return "a job"
    return None


def _reading(node: Source | Static, settings: Settings) -> Iterator[str]:
    if node.format not in FORMATS and not settings.allow_code:
        allowed = ", ".join(sorted(FORMATS))
        yield f"format {node.format!r} is none of {allowed}; others need --allow-code"
    for key in node.options:
        word = key.lower()
        if "." in word or (word not in HARMLESS and any(part in word for part in PLACES)):
            # With a dot they are settings of Hadoop, which decide what a path means.
            yield f"option {key!r} is not taken: where files are is said with path alone"
    if node.path is not None and not is_inside(node.path, settings.roots):
        roots = ", ".join(map(str, settings.roots)) or "none: give --root"
        yield f"path {node.path!r} is in none of the folders that may be read ({roots})"
    elif node.path is not None and (link := link_out(node.path, settings.roots)) is not None:
        yield f"path {node.path!r} has a link in it that leads elsewhere ({link}); take it away"


def is_inside(path: str, roots: tuple[Path, ...]) -> bool:
    """Whether a path is in one of some folders, links followed.

    >>> is_inside("data/in", (Path.cwd(),)), is_inside("../x", (Path.cwd(),))
    (True, False)
    >>> is_inside("s3://bucket/x", (Path.cwd(),))
    False
    """
    # Hadoop reads patterns: a backslash hides what is behind it, braces have paths in them; and
    # behind two slashes stands a host.
    if any(sign in path for sign in (":", "\0", "\\", "{", "..", "//")):
        return False
    # What a pattern begins with decides where it leads, unless there is a link on its way.
    if not _is_below(os.path.realpath(path), roots):
        return False
    return all(_is_below(os.path.realpath(place), roots) for place in glob.iglob(path))


def link_out(path: str, roots: tuple[Path, ...]) -> str | None:
    """A link below a path that leads out of some folders: Spark would follow it."""
    waiting = [os.path.realpath(place) for place in glob.iglob(path) if os.path.isdir(place)]
    seen = set(waiting)
    while waiting:
        try:
            with os.scandir(waiting.pop()) as found:
                entries = list(found)
        except OSError:
            continue  # what can't be listed can't be read
        for entry in entries:
            place = entry.path
            if entry.is_symlink() and not _is_below(place := os.path.realpath(place), roots):
                return entry.path
            if place not in seen and os.path.isdir(place):
                seen.add(place)
                waiting.append(place)
    return None


def _is_below(place: str, roots: tuple[Path, ...]) -> bool:
    return any(Path(place).is_relative_to(os.path.realpath(root)) for root in roots)


def _calling(url: str, settings: Settings) -> Iterator[str]:
    if not any(is_under(url, allowed) for allowed in settings.allow_urls):
        allowed = ", ".join(settings.allow_urls) or "none"
        yield f"{url!r} may not be called (allowed: {allowed}); see --allow-url"


def _mailing(address: str, settings: Settings) -> Iterator[str]:
    if not any(is_among(address, allowed) for allowed in settings.allow_mail):
        allowed = ", ".join(settings.allow_mail) or "none"
        yield f"{address!r} may not be written to (allowed: {allowed}); see --allow-mail"


def is_among(address: str, allowed: str) -> bool:
    """Whether an e-mail address is the allowed one, or of the allowed domain (`@example.org`).

    >>> is_among("Ops@example.org", "ops@example.org"), is_among("a@example.org", "@example.org")
    (True, True)
    >>> (
    ...     is_among("a@evil.example.org", "@example.org"),
    ...     is_among("a@b,c@example.org", "@example.org"),
    ... )
    (False, False)
    """
    told, wanted = address.casefold(), allowed.casefold()
    # What a mail server could take for several addresses, or for a name beside one, is none.
    if any(sign in told for sign in ',;<>()[]\\"\r\n') or told.count("@") != 1:
        return False
    return told.endswith(wanted) if wanted.startswith("@") else told == wanted


def is_under(url: str, allowed: str) -> bool:
    """Whether an address begins with an allowed one, at the end of one of its parts.

    >>> (
    ...     is_under("http://hooks/a/b", "http://hooks/a"),
    ...     is_under("http://hooks.evil/", "http://hooks"),
    ... )
    (True, False)
    """
    base = allowed.rstrip("/")
    if ".." in unquote(unquote(url)) or "\\" in url:
        return False
    return url == base or url.startswith((f"{base}/", f"{base}?"))


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    match value:
        case str():
            yield key, value
        case dict():
            for name, item in value.items():
                yield from _texts(item, key or str(name))
        case list():
            for item in value:
                yield from _texts(item, key)


def unsafe(text: str, *, is_query: bool = False) -> str | None:
    """Why a text may not be handed to Spark as SQL; None where it may.

    >>> unsafe("speed > 3 and upper(station) = 'KIND'")
    >>> unsafe("reflect('java.lang.System', 'exit', 1)")
    "'reflect' runs code"
    """
    from sqlglot.dialects.spark import Spark
    from sqlglot.errors import SqlglotError

    try:
        tokens = [(token.token_type.name, token.text) for token in Spark().tokenize(text)]
    except SqlglotError:
        return "the SQL can't be read"
    for (kind, word), (after, _) in zip(tokens, [*tokens[1:], ("END", "")], strict=True):
        is_text = kind.endswith("STRING")
        if word.casefold() in CALLS and not is_text:
            return f"{word!r} runs code"
        if after == "L_PAREN" and (is_text or word.casefold() == "identifier"):
            return "the name of a function is written as it is"
        if kind == "USING" and (not is_query or after != "L_PAREN"):
            return "scripts (USING '…') are not allowed"
        if not is_query and _is_query(kind, after):
            return "a query inside an expression is not allowed; use a sql node"
    return _foreign_table(text) if is_query else None


def _is_query(kind: str, after: str) -> bool:
    """Whether a query begins here; Spark has ways to write one without SELECT."""
    if kind in ("SELECT", "TABLE", "PIPE_GT"):
        return True
    return kind == "L_PAREN" and after in ("FROM", "WITH", "VALUES")


def _foreign_table(text: str) -> str | None:
    """What else than its inputs a query reads."""
    from sqlglot import exp, parse
    from sqlglot.errors import SqlglotError

    try:
        trees = parse(text, read="spark")
    except (SqlglotError, RecursionError):
        return "the SQL can't be read"
    for tree in trees:
        if tree is not None and tree.find(exp.QueryTransform, exp.Command) is not None:
            return "only SELECT is taken"
        for table in tree.find_all(exp.Table) if tree is not None else ():
            if table.db or table.catalog or not isinstance(table.this, exp.Identifier):
                return f"{table.sql(dialect='spark')!r} is none of the node's inputs"
    return None
