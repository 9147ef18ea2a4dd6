"""The table of operators and captures in `docs/operators.md`, made from the code.

`python -m headwater.lowering.support` prints it; with the path of a page, it writes the table
between the page's markers instead.
"""

from __future__ import annotations

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
    from headwater.lowering.base import Lowering

LOWERINGS: tuple[type[Lowering[Any]], ...] = (Plain, Eager, Intervals, Ancestors)
"""A column of the table for each, under the name of its capture."""

BEGIN = "<!-- begin: python -m headwater.lowering.support -->"
END = "<!-- end -->"


def table() -> str:
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
    for kind in KINDS:
        marks = []
        for lowering in LOWERINGS:
            why = why_refused(kind, lowering)
            number = reasons.setdefault(why, len(reasons) + 1) if why else 0
            marks.append(f"no ({number})" if why else "yes")
        lines.append(f"| `{kind.kind}` | {_summary(kind)} | {' | '.join(marks)} |")
    return "\n".join([*lines, "", *(f"{n}. {why}" for why, n in reasons.items())])


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
    """The page's text with the table between its markers made anew.

    >>> updated(f"above\\n{BEGIN}\\nold\\n{END}\\nbelow").startswith(f"above\\n{BEGIN}\\n| step |")
    True
    """
    above, begin, rest = page.partition(BEGIN)
    _, end, below = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"no table to replace: the page needs {BEGIN} and {END}")
    return f"{above}{BEGIN}\n{table()}\n{END}{below}"


def _summary(kind: type[Node]) -> str:
    """The first line of a node's docstring, which is what its step makes."""
    return (kind.__doc__ or "").strip().splitlines()[0].replace("|", "\\|")


def main(arguments: list[str]) -> None:
    """Print the table, or write it into the pages that are named."""
    if not arguments:
        print(table())
    for argument in arguments:
        page = Path(argument)
        page.write_text(updated(page.read_text()))


if __name__ == "__main__":
    main(sys.argv[1:])
