"""What the reference is made of: the public names of the package, and the commands.

`python scripts/website/reference.py docs/api.md` writes the tables of that page anew.
"""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import typer

from headwater.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES = (
    "headwater",
    "headwater.streams",
    "headwater.deploy",
    "headwater.compose",
    "headwater.runtimes.jobs",
    "headwater.sustain",
    "headwater.prov",
    "headwater.saf",
)
"""What users import from: each has `__all__`."""
BEGIN, END = "<!-- begin: python scripts/website/reference.py -->", "<!-- end -->"


def names(package: str) -> dict[str, Any]:
    """The public names of a package, errors last."""
    module = import_module(package)
    found = {name: getattr(module, name) for name in module.__all__}
    return dict(sorted(found.items(), key=lambda item: (_is_error(item[1]), item[0].lower())))


def _is_error(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Exception)


def path_of(package: str, name: str, value: Any) -> str:
    """Where a name's own text is: `headwater.mapreduce` is a package that can be called."""
    if inspect.ismodule(value):
        return f"{value.__name__}.running.{name}"
    return f"{package}.{name}"


def first_line(value: Any) -> str:
    """The line with which a docstring opens."""
    if not isinstance(value, type) and not callable(value):
        kinds = [kind.__name__ for kind in get_args(value)]
        return f"One of: {', '.join(kinds)}." if kinds else f"By name: {', '.join(value)}."
    return (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")


def tables() -> str:
    """The public names and what they are, a table for each package."""
    parts = []
    for package in PACKAGES:
        short = "hw" if package == "headwater" else package.rpartition(".")[2]
        rows = [
            f"| `{short}.{name}` | {_cell(first_line(value))} |"
            for name, value in names(package).items()
        ]
        head = (inspect.getdoc(import_module(package)) or "").partition("\n")[0]
        parts.append("\n".join([f"## {package}", "", head, "", "| name | |", "|---|---|", *rows]))
    return "\n\n".join(parts)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def written(page: str) -> str:
    """A page with its tables as they are now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables()}\n{END}{after}"


def api_pages() -> dict[str, str]:
    """A page for each package, of directives for mkdocstrings."""
    pages = {}
    for package in PACKAGES:
        parts = [f"# {package}"]
        for name, value in names(package).items():
            parts.append(f"::: {path_of(package, name, value)}\n    options: {{heading_level: 2}}")
        pages[f"reference/api/{package}.md"] = "\n\n".join(parts) + "\n"
    return pages


# --- commands ---------------------------------------------------------------------------------


def commands_page() -> str:
    """Every command with its arguments and options, as `--help` has them."""
    parts = ["# All commands and options", "Made from the commands themselves, as `--help` is."]
    parts += _command(typer.main.get_command(app), "headwater", 2)
    return "\n\n".join(parts) + "\n"


def _command(command: Any, words: str, level: int) -> Iterator[str]:
    yield f"{'#' * level} {words}"
    yield _said(command.help or "")
    below = getattr(command, "commands", {})
    context = typer.Context(command)
    usage = [words, *filter(None, (_usage(p, context) for p in command.params))]
    if not below or getattr(command, "invoke_without_command", False):
        yield f"```text\n{' '.join(usage)}\n```"
    rows = [_row(p, context) for p in command.params if not getattr(p, "hidden", False)]
    if rows:
        yield "\n".join(["| | | default |", "|---|---|---|", *rows])
    for word, inner in below.items():
        if not inner.hidden:
            yield from _command(inner, f"{words} {word}", min(level + 1, 3))


def _said(text: str) -> str:
    """A help text as Markdown: its examples become blocks."""
    plain = inspect.cleandoc(text).replace("\f", "")
    return re.sub(r"^Examples?: `(.+?)`$", r"```sh\n\1\n```", plain, flags=re.MULTILINE)


def _usage(parameter: Any, context: Any) -> str:
    if parameter.param_type_name != "argument":
        return "" if not parameter.required else f"{parameter.opts[0]} {_kind(parameter, context)}"
    word = parameter.metavar or parameter.name.upper()
    word += "..." if parameter.nargs == -1 else ""
    return word if parameter.required else f"[{word}]"


def _row(parameter: Any, context: Any) -> str:
    if parameter.param_type_name == "argument":
        name = f"`{parameter.metavar or parameter.name.upper()}`"
    else:
        spelled = [*parameter.opts, *parameter.secondary_opts]
        kind = "" if parameter.is_flag else f" {_kind(parameter, context)}"
        name = ", ".join(f"`{word}{kind}`" for word in spelled)
    text = " ".join((parameter.help or "").split())
    return f"| {_cell(name)} | {_cell(text)} | {_cell(_default(parameter))} |"


def _kind(parameter: Any, context: Any) -> str:
    return str(parameter.display_type(context)).strip("<>")


def _default(parameter: Any) -> str:
    shown, value = parameter.show_default, parameter.default
    if isinstance(shown, str):
        return shown
    if parameter.required:
        return "required"
    if shown is False or value in (None, False, "", ()) or callable(value):
        return ""
    if value is True:
        return "yes"
    if isinstance(value, list | tuple):
        return ", ".join(f"`{one}`" for one in value)
    return f"`{getattr(value, 'value', value)}`"


if __name__ == "__main__":
    for given in map(Path, sys.argv[1:]):
        given.write_text(written(given.read_text(encoding="utf-8")), encoding="utf-8")
