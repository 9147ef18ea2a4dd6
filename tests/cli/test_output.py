"""Tables for people."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest
from rich.console import Console

from headwater.cli import output

TABLE = pa.table(
    {"result_id": [-(2**63), 7], "name": ["a name that is long", None], "x": [0.5, 12.25]}
)


@pytest.mark.parametrize("width", [10, 40, 200])
def test_nothing_is_cut_in_a_narrow_terminal(width: int) -> None:
    file = io.StringIO()
    terminal = Console(file=file, width=width, force_terminal=True, color_system=None)
    output.print_rich(terminal, output.rich_table(TABLE))
    head, line, first, second = (text.split() for text in file.getvalue().splitlines())
    assert head == ["result_id", "name", "x"]
    assert set("".join(line)) == {"─"}
    assert first == [str(-(2**63)), "a", "name", "that", "is", "long", "0.5"]
    assert second == ["7", "12.25"]
    assert terminal.width == width


def test_markup_in_values_is_text() -> None:
    file = io.StringIO()
    output.print_rich(output.console(file), output.rich_table(pa.table({"a": ["[red]x[/]"]})))
    assert "[red]x[/]" in file.getvalue()
