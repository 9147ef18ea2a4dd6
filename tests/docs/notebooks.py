"""The tutorial notebooks: run in a kernel or in this process, and told without what varies.

`scripts/notebooks` runs them all, each in a kernel and a folder of its own, and stores what they
say. Outputs are the same every time, so a file changes only when something has changed.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

import nbformat
from IPython.lib.pretty import pretty
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from headwater.deploy import Host

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
NOTEBOOKS = sorted(TUTORIALS.glob("*.ipynb"))

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
"""What a notebook says of its kernel: nothing of a machine's own."""
PATIENCE = 300
"""Seconds for a cell."""
PLACE = re.compile(r"file:/[^\s'\"]*|(?<![\w./:])(?:/[\w.@-]+){2,}")
"""A path from a machine's root: one of at least two names, so that `1/2` and `</p>` are none."""

Outputs = list[list[dict[str, Any]]]
"""By code cell, what it said: text that was printed, and the value of its last line."""
_REPRS = {
    "text/html": "_repr_html_",
    "text/markdown": "_repr_markdown_",
    "image/svg+xml": "_repr_svg_",
}


def read(path: Path) -> NotebookNode:
    """A notebook with the texts of its cells whole."""
    return nbformat.read(path, as_version=4)


def code(notebook: NotebookNode) -> list[NotebookNode]:
    """Its cells of code, in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def stored(notebook: NotebookNode) -> Outputs:
    """What its cells say in the file."""
    return [[_told(output) for output in cell.outputs] for cell in code(notebook)]


# --- in a kernel ------------------------------------------------------------------------------


def run(notebook: NotebookNode, folder: Path) -> None:
    """Run it in a kernel that works in `folder`, and keep what it says, tidied."""
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=PATIENCE, kernel_name="python3", resources=resources).execute()
    tidy(notebook)


def tidy(notebook: NotebookNode) -> None:
    """Drop what differs from run to run: numbers, times, and what Java and Spark log."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({})
    for cell in code(notebook):
        cell.execution_count = None
        kept = [o for o in cell.outputs if o.output_type != "stream" or o.name == "stdout"]
        cell.outputs = []
        for output in kept:
            last = cell.outputs[-1] if cell.outputs else None
            if output.output_type == "stream" and last and last.output_type == "stream":
                last.text += output.text  # A slow kernel sends what was printed in pieces.
            else:
                cell.outputs.append(output)
        for output in kept:
            if output.output_type == "execute_result":
                output.execution_count = None
                output.metadata = nbformat.from_dict({})


# --- in this process --------------------------------------------------------------------------


def run_here(notebook: NotebookNode, folder: Path, before: str | None = None) -> Outputs:
    """What its cells say when they are run one after the other in this process.

    Much faster than a kernel where there is a Spark session already. Of IPython there is only the
    value of a cell's last line; magics and `display` are errors. With `before`, it ends before the
    first cell that has this text.
    """
    import pandas as pd

    # Functions of `__main__` go to Spark's workers as they are, as they do in a kernel.
    names: dict[str, Any] = {"__name__": "__main__"}
    told = []
    # As pandas has it in a notebook; elsewhere it would look at the terminal.
    with chdir(folder), pd.option_context("display.max_columns", 20, "display.width", 80):
        try:
            for number, cell in enumerate(code(notebook), 1):
                if before is not None and before in cell.source:
                    break
                told.append(list(_cell(cell.source, f"In[{number}]", names)))
        except BaseException:
            # What it deployed would go on, beside all other tests.
            for host in [value for value in names.values() if isinstance(value, Host)]:
                host.stop()
            raise
    return told


def _cell(source: str, title: str, names: dict[str, Any]) -> Iterator[dict[str, Any]]:
    body = ast.parse(source, title).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, []), title, "exec"), names)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), title, "eval"), names)
    if printed.getvalue():
        yield {"stdout": printed.getvalue()}
    if value is not None:
        yield _bundle(value)


def _bundle(value: object) -> dict[str, Any]:
    """A value in the forms that a kernel would give it."""
    found = {form: getattr(value, method, None) for form, method in _REPRS.items()}
    made = {form: method() for form, method in found.items() if isinstance(method, Callable)}
    return {"text/plain": pretty(value), **{k: v for k, v in made.items() if v is not None}}


def _told(output: NotebookNode) -> dict[str, Any]:
    if output.output_type == "stream":
        return {output.name: output.text}
    return dict(output.data)


# --- what is stored ---------------------------------------------------------------------------


def places(notebook: NotebookNode) -> list[str]:
    """Paths of a machine that its outputs name, which they must not."""
    texts = [str(text) for cell in stored(notebook) for told in cell for text in told.values()]
    return [found for text in texts for found in PLACE.findall(text)]


def store(path: Path) -> str:
    """Run a notebook and write what it says into its file; what there is to tell of it."""
    notebook = read(path)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        run(notebook, Path(folder))
    took = f"{time.monotonic() - began:.0f} s"
    if found := places(notebook):
        raise SystemExit(f"{path.name}: an output names {found[0]}, a path of this machine")
    text = nbformat.writes(notebook) + "\n"
    if text == path.read_text():
        return f"unchanged, {took}"
    path.write_text(text)
    return f"written, {took}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the notebooks, or those that are named, and stores their outputs."""
    parser = argparse.ArgumentParser(prog="scripts/notebooks", description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as trace-an-alert")
    given = parser.parse_args(arguments)
    known = {path.stem: path for path in NOTEBOOKS}
    for name in given.names:
        if name not in known:
            parser.error(f"there is no notebook {name!r}; there are {', '.join(known)}")
    os.environ["TZ"] = "UTC"
    for name in given.names or known:
        try:
            print(f"{name}: {store(known[name])}", flush=True)
        except CellExecutionError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
