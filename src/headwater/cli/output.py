"""What the commands print: tables for people, JSON for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from headwater.cli.values import json_rows, text

if TYPE_CHECKING:
    from rich.console import Console

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def console(file: TextIO | None = None) -> Console:
    """Where people read: stdout, or a `file`. What is piped is never cut to a terminal's width."""
    from rich.console import Console

    made = Console(file=file, highlight=False)
    if not made.is_terminal:
        made.width = 10_000
    return made


def print_json(pieces: Iterable[str]) -> None:
    """Writes text to stdout as it is."""
    for piece in pieces:
        sys.stdout.write(piece)
    sys.stdout.flush()


def print_table(table: Any, json: bool, note: str | None = None) -> None:
    """Prints an Arrow table; a `note` under it says what was left out."""
    if json:
        print_json(json_rows(table))
        return
    out = console()
    print_rich(out, rich_table(table))
    if note:
        out.print(note, style="dim")


def print_rich(out: Console, table: Any) -> None:
    """Prints a table whole: lines too wide for the terminal wrap there, and no id is cut."""
    from rich.measure import Measurement

    width = out.width
    needed = Measurement.get(out, out.options.update(max_width=10_000), table).maximum
    try:
        out.width = max(width, needed)
        out.print(table, crop=False)
    finally:
        out.width = width


def rich_table(table: Any) -> Any:
    """An Arrow table as a table for the terminal; ids and numbers are never cut."""
    import pyarrow as pa
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for field in table.schema:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        fixed = number or pa.types.is_timestamp(field.type)
        shown.add_column(
            Text(field.name), justify="right" if number else "left", no_wrap=fixed, overflow="fold"
        )
    for row in table.to_pylist():
        shown.add_row(*(Text(text(value)) for value in row.values()))
    return shown
