"""What `docs/flow-files.md` shows, made from the code: tables, a plan, a picture, errors.

`python -m headwater.compose.tables` prints the tables; with the path of a page, it writes all of it
between the page's markers instead. The plan is that of the page's first flow, the errors are those
of its second.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.compose.composition import Composition
from headwater.compose.kinds import KINDS
from headwater.compose.node import Node, keys
from headwater.compose.schema import summary
from headwater.compose.violations import RULES, CompositionError

if TYPE_CHECKING:
    from collections.abc import Callable


def kinds() -> str:
    """A row for each kind: what it makes, its keys, its ports, where it runs.

    >>> print(kinds().splitlines()[0])
    | kind | what it makes | keys | reads | runs as |
    """
    lines = ["| kind | what it makes | keys | reads | runs as |", "|---|---|---|---|---|"]
    lines += [
        f"| `{name}` | {summary(kind)} | {_keys(kind)} | {_reads(kind)} | {_runs(kind)} |"
        for name, kind in KINDS.items()
    ]
    return "\n".join(lines)


def rules() -> str:
    """A row for each rule."""
    lines = ["| rule | what it asks |", "|---|---|"]
    return "\n".join([*lines, *(f"| `{name}` | {asks} |" for name, asks in RULES.items())])


TABLES: dict[str, Callable[[], str]] = {"kinds": kinds, "rules": rules}
_FLOW = re.compile(r"^```yaml\n(flow:.*?)^```$", re.MULTILINE | re.DOTALL)


def shown(page: str) -> dict[str, Callable[[], str]]:
    """What a page's own flows give: the plan and picture of the first, the errors of the second."""
    good, bad = _FLOW.findall(page)[:2]
    plan = Composition.parse(good, "weather.yaml").plan()
    return {
        "plan": lambda: f"```text\n{plan.to_text()}\n```",
        "picture": lambda: f"```mermaid\n{plan.to_mermaid()}\n```",
        "errors": lambda: f"```text\n{_errors(bad)}\n```",
    }


def _errors(text: str) -> str:
    try:
        return "\n".join(map(str, Composition.parse(text, "wrong.yaml").check()))
    except CompositionError as error:
        return str(error)


def updated(page: str) -> str:
    """A page's text with everything between its markers made anew."""
    for name, table in {**TABLES, **shown(page)}.items():
        begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
        if begin not in page or end not in page:
            raise ValueError(f"nothing to replace: the page needs {begin} and {end}")
        between = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        made = f"{begin}\n{table()}\n{end}"
        page = between.sub(made.replace("\\", r"\\"), page)
    return page


def _keys(kind: type[Node]) -> str:
    own = [key for key in keys(kind) if key.name not in ("from", "cardinality", "runtime")]
    return ", ".join(f"**`{k.name}`**" if k.required else f"`{k.name}`" for k in own) or "–"


def _reads(kind: type[Node]) -> str:
    least, most = kind.ports
    if kind.kind in ("source", "static"):
        return "static nodes" if kind.kind == "source" else "any"
    if most is not None:
        count = "one node" if most == 1 else f"{most} nodes"
    else:
        count = f"{least} nodes or more" if least > 1 else "one node or more"
    if kind.kind == "join":
        return "2 streams, or a stream and a static node"
    return f"{count}{', static ones among them' if kind.statics else ''}"


def _runs(kind: type[Node]) -> str:
    if kind.kind == "sink":
        return "what it reads; alerts as functions"
    able: list[str] = list(kind.runtimes)
    first, *others = able + ["static"] * kind.promotable
    return ", ".join([f"**{first}**", *others])


def main(arguments: list[str]) -> None:
    """Print the tables, or write them into the pages that are named."""
    if not arguments:
        print("\n\n".join(table() for table in TABLES.values()))
    for argument in arguments:
        page = Path(argument)
        page.write_text(updated(page.read_text()))


if __name__ == "__main__":
    main(sys.argv[1:])
