"""The tables of operators and captures in the docs, made from the code.

`python -m headwater.lowering.support` prints the whole table. With pages, or folders of pages, it
writes the tables between their markers instead: `docs/operators.md` has all kinds of step, the page
of an operator those that its marker names.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.flow.nodes import KINDS, Node, Ordered
from headwater.lowering.ancestors import Ancestors
from headwater.lowering.eager import Eager
from headwater.lowering.intervals import Intervals
from headwater.lowering.plain import Plain
from headwater.store.catalog import LAZY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.lowering.base import Lowering

LOWERINGS: tuple[type[Lowering[Any]], ...] = (Plain, Eager, Intervals, Ancestors)
"""A column of the table for each, under the name of its capture."""

COMMAND = "python -m headwater.lowering.support"
END = "<!-- end -->"
_BLOCK = re.compile(rf"(<!-- begin: {re.escape(COMMAND)}((?: \w+)*) -->\n).*?({END})", re.DOTALL)


def begin(*kinds: str) -> str:
    """The marker before a table, of all kinds of step or of some.

    >>> begin("project", "drop")
    '<!-- begin: python -m headwater.lowering.support project drop -->'
    """
    return f"<!-- begin: {' '.join((COMMAND, *kinds))} -->"


def table(kinds: Sequence[type[Node]] = KINDS) -> str:
    """A row for each kind of step, a column for each capture.

    >>> print(table().splitlines()[0])
    | step | what it makes | `none` | `eager` | `intervals` | `ancestors` |
    """
    captures = [f"`{lowering.name}`" for lowering in LOWERINGS]
    lines = [
        f"| step | what it makes | {' | '.join(captures)} |",
        f"|---|---|{':---:|' * len(LOWERINGS)}",
    ]
    reasons: dict[str, int] = {}
    for kind in kinds:
        marks = []
        for lowering in LOWERINGS:
            why = why_refused(kind, lowering)
            number = reasons.setdefault(why, len(reasons) + 1) if why else 0
            marks.append(f"no ({number})" if why else "yes")
        lines.append(f"| `{kind.kind}` | {_summary(kind)} | {' | '.join(marks)} |")
    notes = [f"{n}. {why}" for why, n in reasons.items()]
    return "\n".join([*lines, "", *notes])


def why_refused(kind: type[Node], lowering: type[Lowering[Any]]) -> str | None:
    """Why a capture never traces a kind of step; what depends on its parameters is not told."""
    if kind.kind not in lowering.supported():
        return f"`{lowering.name}` has no rule for it."
    if issubclass(kind, Ordered) and lowering.name in LAZY:
        return (
            "What it makes depends on everything that arrived before, which a slice of the source "
            "does not show; use `eager`, which `auto` does."
        )
    return None


def updated(page: str) -> str:
    """The page's text with the tables between its markers made anew.

    >>> text = updated(f"above\\n{begin('filter')}\\nold\\n{END}\\nbelow")
    >>> print(text.splitlines()[4])
    | `filter` | Rows for which a condition holds. | yes | yes | yes | yes |
    """
    made, count = _BLOCK.subn(lambda m: f"{m[1]}{table(_named(m[2].split()))}\n{m[3]}", page)
    if not count:
        raise ValueError(f"no table to replace: the page needs {begin()} and {END}")
    return made


def kinds_of(page: str) -> list[str]:
    """The kinds of step in a page's tables."""
    return [kind.kind for block in _BLOCK.finditer(page) for kind in _named(block[2].split())]


def _named(kinds: Sequence[str]) -> Sequence[type[Node]]:
    known = {kind.kind: kind for kind in KINDS}
    for kind in kinds:
        if kind not in known:
            raise ValueError(f"{begin(*kinds)}: {kind!r} is no step; there are {', '.join(known)}")
    return [known[kind] for kind in kinds] or KINDS


def _summary(kind: type[Node]) -> str:
    """The first line of a node's docstring, which is what its step makes."""
    return (kind.__doc__ or "").strip().splitlines()[0].replace("|", "\\|")


def _pages(paths: Sequence[str]) -> Iterator[Path]:
    """The pages that are named, and those with a marker in the folders that are."""
    for path in map(Path, paths):
        if path.is_dir():
            yield from (p for p in sorted(path.rglob("*.md")) if _BLOCK.search(p.read_text()))
        else:
            yield path


def main(arguments: list[str]) -> None:
    """Print the table, or write it into the pages that are named."""
    if not arguments:
        print(table())
    for page in _pages(arguments):
        page.write_text(updated(page.read_text()))


if __name__ == "__main__":
    main(sys.argv[1:])
