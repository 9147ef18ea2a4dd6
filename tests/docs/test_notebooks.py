"""The tutorial notebooks run, say what is stored in them, and store nothing of a machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.docs import notebooks
from tests.docs.notebooks import NOTEBOOKS, TUTORIALS

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
DEPLOYS = TUTORIALS / "weather.ipynb"
"""It starts queries, queues and processes, and changes them: up to there in the default run."""
HERE = [path for path in NOTEBOOKS if path != DEPLOYS]


def title(path: Path) -> str:
    return path.stem


def test_there_are_notebooks() -> None:
    assert {path.stem for path in NOTEBOOKS} == {
        *("trace-an-alert", "privacy-request", "wrong-aggregate", "foreign-job", "weather")
    }


# --- running ----------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.parametrize("path", HERE, ids=title)
def test_it_says_what_is_stored(path: Path, tmp_path: Path, interpreted: SparkSession) -> None:
    notebook = notebooks.read(path)
    made = notebooks.run_here(notebook, tmp_path)
    assert made == notebooks.stored(notebook)


def test_a_flow_is_composed_as_is_stored(tmp_path: Path) -> None:
    """The part of the weather notebook before anything runs."""
    notebook = notebooks.read(DEPLOYS)
    made = notebooks.run_here(notebook, tmp_path, before="Host(")
    assert len(made) >= 4
    assert made == notebooks.stored(notebook)[: len(made)]


@pytest.mark.spark
@pytest.mark.long
def test_a_flow_is_deployed_as_is_stored(tmp_path: Path, interpreted: SparkSession) -> None:
    """Long: a deployment, three versions, and a process for each forecast."""
    notebook = notebooks.read(DEPLOYS)
    made = notebooks.run_here(notebook, tmp_path)
    assert made == notebooks.stored(notebook)


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=title)
def test_in_a_kernel_it_says_the_same(path: Path, tmp_path: Path) -> None:
    """Long: each kernel starts Python and Java."""
    notebook = notebooks.read(path)
    before = notebooks.stored(notebook)
    notebooks.run(notebook, tmp_path)
    assert notebooks.stored(notebook) == before


# --- what is stored ---------------------------------------------------------------------------


@pytest.mark.parametrize("path", NOTEBOOKS, ids=title)
def test_it_is_stored_tidily(path: Path) -> None:
    """So that a run changes no line of the file, on whatever machine."""
    notebook, tidied = notebooks.read(path), notebooks.read(path)
    notebooks.tidy(tidied)
    assert notebook == tidied
    assert notebooks.places(notebook) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=title)
def test_it_teaches_in_small_steps(path: Path) -> None:
    """It was run; a title comes first, text before every other cell of code, and much is shown."""
    notebook = notebooks.read(path)
    kinds = [cell.cell_type for cell in notebook.cells]
    assert notebook.cells[0].source.startswith("# ")
    assert kinds.count("markdown") > kinds.count("code") / 2
    shown = [cell for cell in notebooks.stored(notebook) if cell]
    assert len(shown) > len(notebooks.code(notebook)) / 2


@pytest.mark.parametrize("path", [*NOTEBOOKS, TUTORIALS / "index.md"], ids=title)
def test_its_links_lead_somewhere(path: Path) -> None:
    text = path.read_text()
    if path.suffix == ".ipynb":
        cells = notebooks.read(path).cells
        text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    links = [link for link in LINK.findall(text) if not re.match(r"[a-z]+:", link)]
    assert links
    for link in links:
        target, _, anchor = link.partition("#")
        assert (path.parent / target).exists(), link
        assert not anchor or anchor in anchors((path.parent / target).read_text()), link


def anchors(page: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_notebook_is_on_the_list_of_tutorials() -> None:
    linked = set(LINK.findall((TUTORIALS / "index.md").read_text()))
    assert {path.name for path in NOTEBOOKS} <= linked


# --- the tests' own means ---------------------------------------------------------------------


def written(*sources: str) -> notebooks.NotebookNode:
    from nbformat.v4 import new_code_cell, new_notebook

    return new_notebook(cells=[new_code_cell(source) for source in sources])


def test_cells_run_in_order_and_the_last_line_counts(tmp_path: Path) -> None:
    cells = written("a = 2\nprint('two')", "a + 1", "a = 3", "print(a); [a]")
    assert notebooks.run_here(cells, tmp_path) == [
        [{"stdout": "two\n"}],
        [{"text/plain": "3"}],
        [],
        [{"stdout": "3\n"}, {"text/plain": "[3]"}],
    ]


def test_a_cell_that_fails_fails_the_run(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        notebooks.run_here(written("1 / 0"), tmp_path)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("parquet /tmp/x7/traffic", ["/tmp/x7/traffic"]),
        ("in file:///home/ann/a.json", ["file:///home/ann/a.json"]),
        ('xmlns="http://www.w3.org/2000/svg"', []),
        ("hw:streams/radar/17 and </p> and 1/2", []),
        ("wrote flows/weather/1", []),
    ],
)
def test_paths_of_a_machine_are_found(text: str, found: list[str], tmp_path: Path) -> None:
    from nbformat.v4 import new_output

    notebook = written("x")
    notebook.cells[0].outputs = [new_output("stream", name="stdout", text=text)]
    assert notebooks.places(notebook) == found
