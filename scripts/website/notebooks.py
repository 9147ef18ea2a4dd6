"""Notebooks as pages: their text, their code, and what running it gave."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any

import nbformat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
RICH = ("text/html", "image/svg+xml", "image/png", "image/jpeg", "text/markdown", "text/plain")
"""What is shown of an output, the first that it has."""
HIDDEN = "hide"
"""A cell with this tag is left out."""


def page(text: str, name: str, raw: Callable[[str], str]) -> str:
    """A notebook as Markdown; `raw` keeps HTML as it is and returns what stands for it."""
    notebook = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
    language = notebook.metadata.get("kernelspec", {}).get("language", "python")
    parts: list[str] = []
    for cell in notebook.cells:
        if HIDDEN in cell.metadata.get("tags", ()):
            continue
        if cell.cell_type == "code":
            if cell.source.strip():
                parts.append(fenced(cell.source, language))
            parts += [shown for output in cell.outputs for shown in _shown(output, raw)]
        else:
            parts.append(cell.source)
    note = raw(f'<p class="notebook"><a href="{escape(name)}" download>{escape(name)}</a></p>')
    # Below the heading, which must come first to be the page's title.
    heading, _, rest = "\n\n".join(parts).partition("\n")
    return f"{heading}\n\n{note}\n{rest}\n"


def _shown(output: Any, raw: Callable[[str], str]) -> Iterator[str]:
    if output.output_type == "stream":
        yield fenced(COLOURS.sub("", output.text), "text", "output")
    elif output.output_type == "error":
        yield fenced(COLOURS.sub("", "\n".join(output.traceback)), "text", "output")
    else:
        kind = next((kind for kind in RICH if kind in output.data), None)
        if kind is not None:
            yield _rich(kind, output.data[kind], raw)


def _rich(kind: str, data: str, raw: Callable[[str], str]) -> str:
    if kind in ("text/html", "image/svg+xml"):
        return raw(f'<div class="output rich">{data}</div>')
    if kind.startswith("image/"):
        encoded = data.replace("\n", "")
        return raw(
            f'<div class="output rich"><img alt="" src="data:{kind};base64,{encoded}"></div>'
        )
    if kind == "text/markdown":
        return data
    return fenced(data, "text", "output")


def fenced(text: str, language: str, style: str = "") -> str:
    """A block of code, whatever is in it."""
    fence = max([*re.findall("`+", text), "``"], key=len) + "`"
    head = f"{{ .{language} .{style} }}" if style else language
    return f"{fence}{' ' if style else ''}{head}\n{text.rstrip()}\n{fence}"
