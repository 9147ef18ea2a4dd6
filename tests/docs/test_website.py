"""What the site has beyond Markdown: diagrams, notebooks, groups of pages, links out of `docs/`."""

from __future__ import annotations

import re
from html import unescape
from itertools import combinations
from pathlib import Path

import nbformat
import pytest

from website import notebooks, outside
from website.diagrams import DiagramError, parsed, svg
from website.diagrams.layout import laid_out
from website.navigation import expanded

ROOT = Path(__file__).parents[2]
DIAGRAMS = [
    pytest.param(text, id=f"{page.stem}-{number}")
    for page in sorted((ROOT / "docs").rglob("*.md"))
    for number, text in enumerate(
        re.findall(r"^```mermaid\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    )
]


# --- diagrams ---------------------------------------------------------------------------------


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("text", DIAGRAMS)
def test_no_box_of_a_diagram_covers_another(text: str, down: bool) -> None:
    layout = laid_out(parsed(text), down=down)
    for one, other in combinations(layout.boxes.values(), 2):
        beside = abs(one.x - other.x) >= (one.width + other.width) / 2
        assert beside or abs(one.y - other.y) >= (one.height + other.height) / 2, (one, other)
    for box in layout.boxes.values():
        assert box.width / 2 <= box.x <= layout.width - box.width / 2
        assert box.height / 2 <= box.y <= layout.height - box.height / 2


@pytest.mark.parametrize("text", DIAGRAMS)
def test_all_that_a_diagram_says_is_in_its_picture(text: str) -> None:
    drawn, diagram = unescape(svg(text)), parsed(text)
    said = [node.text for node in diagram.nodes.values()]
    said += [*diagram.groups.values(), *(arrow.text for arrow in diagram.arrows)]
    for line in re.split(r"<br/>", "<br/>".join(said)):
        assert f">{re.sub('</?small>', '', line)}<" in drawn or not line
    assert drawn.count("diagram-head") == sum(arrow.seen for arrow in diagram.arrows)


def test_arrows_lead_from_left_to_right_unless_they_lead_back() -> None:
    layout = laid_out(parsed("flowchart LR\n a --> b\n b --> c\n c --> a\n a --> c"), down=False)
    assert layout.boxes["a"].x < layout.boxes["b"].x < layout.boxes["c"].x
    assert [len(way) for _, way in layout.ways] == [2, 2, 3, 3]


@pytest.mark.parametrize("line", ["a --o b", "a ==> b", "click a call()", "a[x"])
def test_a_line_that_is_not_understood_is_an_error(line: str) -> None:
    with pytest.raises(DiagramError, match=re.escape(line.split()[-1])):
        parsed(f"flowchart LR\n{line}")


def test_another_kind_of_diagram_is_an_error() -> None:
    with pytest.raises(DiagramError, match="sequenceDiagram"):
        parsed("sequenceDiagram\n a ->> b: hello")


# --- notebooks --------------------------------------------------------------------------------


def test_a_notebook_becomes_a_page_with_its_outputs() -> None:
    out = nbformat.v4.new_output
    cell = nbformat.v4.new_code_cell(
        "show()",
        outputs=[
            out("stream", name="stdout", text="\x1b[31mtwo\x1b[0m ``` lines\n"),
            out("execute_result", data={"text/html": "<b>rich</b>", "text/plain": "plain"}),
            out("display_data", data={"image/png": "QUJD\n", "text/plain": "<Figure>"}),
            out("error", ename="KeyError", evalue="'x'", traceback=["KeyError: 'x'"]),
        ],
    )
    hidden = nbformat.v4.new_code_cell("secret()", metadata={"tags": ["hide"]})
    first = nbformat.v4.new_markdown_cell("# Trace an alert")
    text = nbformat.writes(nbformat.v4.new_notebook(cells=[first, cell, hidden]))
    kept: list[str] = []

    def raw(html: str) -> str:
        kept.append(html)
        return f"KEPT {len(kept) - 1}"

    page = notebooks.page(text, "trace.ipynb", raw)
    assert page.startswith("# Trace an alert\n\nKEPT")
    assert "```python\nshow()\n```" in page
    assert "```` { .text .output }\ntwo ``` lines\n````" in page
    assert "KeyError: 'x'" in page
    assert "secret" not in page
    assert 'href="trace.ipynb"' in "".join(kept)
    assert '<div class="output rich"><b>rich</b></div>' in kept
    assert any("data:image/png;base64,QUJD" in html for html in kept)
    assert "plain" not in page


# --- groups and links -------------------------------------------------------------------------


def test_a_star_takes_what_no_other_entry_names() -> None:
    nav = [{"A": ["a.md", "ops/*"]}, {"B": ["none/*"]}, {"C": [{"D": "d.md"}, "*"]}]
    pages = ["a.md", "d.md", "new.md", "ops/b.md", "ops/index.md", "ops/deep/x.md"]
    assert expanded(nav, pages) == [
        {"A": ["a.md", "ops/index.md", "ops/b.md"]},
        {"C": [{"D": "d.md"}, "new.md"]},
    ]


def test_links_out_of_the_docs_lead_to_pages_of_the_site() -> None:
    text = "[r](../README.md#x) [s](../src/a.py) [n](t/n.ipynb) [h](https://a.b) `[c](../c.md)`"
    assert outside.relinked(text, "docs/a.md", "a.md") == (
        "[r](project/readme.md#x) [s](project/files/src/a.py.md) [n](t/n.md) [h](https://a.b) "
        "`[c](../c.md)`"
    )
    shown = outside.relinked("[d](docs/a.md) ![i](docs/i.svg)", "README.md", "project/readme.md")
    assert shown == "[d](../a.md) ![i](../i.svg)"


def test_a_file_is_shown_as_it_is() -> None:
    shown = outside.text_of(ROOT, "LICENSE")
    assert shown.startswith("# Licence\n\n```text\n")
    assert (ROOT / "LICENSE").read_text() in shown
