"""Compositions to Python, and Python files to compositions."""

from __future__ import annotations

import runpy
from typing import TYPE_CHECKING, Any

from headwater.compose.composition import Composition
from headwater.compose.node import Node, keys
from headwater.compose.violations import CompositionError, Violation

if TYPE_CHECKING:
    from pathlib import Path

_WIDTH = 100
_CHAIN = 100


def to_python(composition: Composition) -> str:
    """Python that makes the composition, a node a line where it fits."""
    calls = [_call(name, node) for name, node in composition.nodes.items()]
    text = f'"""The flow {composition.name}."""\n\nfrom headwater.compose import Composition\n\n'
    start = f"Composition({_literal(composition.name)})"
    # Python's parser refuses chains of thousands of calls.
    for at in range(0, max(len(calls), 1), _CHAIN):
        text += f"flow = (\n    {start}\n{''.join(calls[at : at + _CHAIN])})\n"
        start = "flow"
    return text


def _call(name: str, node: Node) -> str:
    told = node.written()
    arguments = [_literal(name)]
    if "from" in told:
        arguments.append(_literal(told["from"]))
    arguments += [
        f"{each.attribute}={_literal(told[each.name])}"
        for each in keys(type(node))
        if each.name in told and each.name != "from"
    ]
    line = f"    .{node.kind}({', '.join(arguments)})\n"
    if len(line) <= _WIDTH + 1:
        return line
    return f"    .{node.kind}(\n" + "".join(f"        {a},\n" for a in arguments) + "    )\n"


def _literal(value: Any) -> str:
    """A value as Python writes it, with the quotes that its formatters prefer."""
    if isinstance(value, str):
        text = repr(value)
        if text.startswith("'") and '"' not in text:
            return f'"{text[1:-1]}"'
        return text
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_literal(n)}: {_literal(v)}' for n, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    return repr(value)


def read_python(path: Path) -> Composition:
    """The one composition that a Python file makes; the file is run."""
    if not path.is_file():
        raise CompositionError([Violation("file", f"{path} can't be read: no such file")])
    try:
        names = runpy.run_path(str(path), run_name="__headwater__")
    except CompositionError:
        raise
    except Exception as error:
        text = f"{path} raises {type(error).__name__}: {error}"
        raise CompositionError([Violation("file", " ".join(text.split()))]) from error
    found = {id(v): v for v in names.values() if isinstance(v, Composition)}
    if len(found) != 1:
        text = f"{path} makes {len(found)} compositions; leave one, under one name"
        raise CompositionError([Violation("file", text)])
    (made,) = found.values()
    return made
