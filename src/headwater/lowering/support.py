"""The table of operators and captures in `docs/operators.md`, made from the code.

`python -m headwater.lowering.support` prints it; with the path of a page, it writes the table
between the page's markers instead.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.flow.nodes import KINDS, Node
from headwater.lowering.ancestors import Ancestors
from headwater.lowering.eager import Eager
from headwater.lowering.intervals import Intervals
from headwater.lowering.plain import Plain

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
    for kind in KINDS:
        marks = ["yes" if kind.kind in lowering.supported() else "no" for lowering in LOWERINGS]
        lines.append(f"| `{kind.kind}` | {_summary(kind)} | {' | '.join(marks)} |")
    return "\n".join(lines)


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
