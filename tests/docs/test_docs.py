"""The pages say what the code does: links, examples, tables, commands and error messages."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import typer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from headwater.cli.app import app
from headwater.examples import linear_road
from headwater.flow.grouped import GroupedFrame
from headwater.flow.nodes import KINDS
from headwater.lowering import support
from headwater.query import why_not
from headwater.replay import fates
from headwater.server import operations
from headwater.store import schema

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
OPERATORS = [DOCS / "operators.md", *sorted((DOCS / "operators").glob("*.md"))]
"""The overview, and a page for each operator."""

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(<!-- run -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[tuple[bool, str, str]]:
    """The fenced blocks of a page: whether marked to be run, language, text."""
    return [(bool(m[1]), m[2], m[3]) for m in FENCE.finditer(page.read_text())]


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text())


def table(page: Path, heading: str) -> list[list[str]]:
    """The cells of the rows of the first table whose first column is so called."""
    _, _, below = page.read_text().partition(f"\n| {heading} |")
    rows = below.split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]


# --- links ------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} does not exist"
        assert not anchor or anchor in anchors(target), f"{link}: no such heading"


def test_every_page_can_be_reached_from_the_index() -> None:
    """Those of this folder by one link, those below it from any page that can be reached."""

    def linked(page: Path) -> set[Path]:
        links = (link.partition("#")[0] for link in LINK.findall(prose(page)))
        targets = {(page.parent / link).resolve() for link in links if link.endswith(".md")}
        return {target for target in targets if DOCS in target.parents}

    index = DOCS / "index.md"
    assert set(DOCS.glob("*.md")) - {index} <= linked(index)
    reached, new = set[Path](), {index}
    while new:
        reached |= new
        new = {target for page in new for target in linked(page)} - reached
    assert set(DOCS.rglob("*.md")) <= reached


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_path_that_is_named_exists(page: Path) -> None:
    """Paths from the repository's root, and modules (`flow/nodes.py`) from the package's."""
    named = re.findall(r"\b(?:src/headwater|tests|docs)/[\w./-]*\w", page.read_text())
    named += re.findall(r"`(\w+/[\w/]+\.py)`", page.read_text())
    places = (ROOT, ROOT / "src" / "headwater")
    assert [path for path in named if not any((at / path).exists() for at in places)] == []


# --- examples ---------------------------------------------------------------------------------

RUNNABLE = [page for page in PAGES if any(run for run, _, _ in blocks(page))]


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demo's data, in which the README's example has run."""
    folder = tmp_path_factory.mktemp("docs")
    linear_road.generate(folder / "headwater-demo" / "data", reports=6_000, files=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        execute(ROOT / "README.md")
    return folder


def execute(page: Path) -> dict[str, Any]:
    """Run the marked blocks of a page; the names that they leave."""
    names: dict[str, Any] = {"__name__": "__docs__"}
    for run, language, text in blocks(page):
        if not run:
            continue
        if language == "pycon":
            compare(page, text, names)
        else:
            assert language == "python", f"{name(page)}: can't run a {language} block"
            exec(compile(text, name(page), "exec"), names)
    return names


def compare(page: Path, text: str, names: dict[str, Any]) -> None:
    example = doctest.DocTestParser().get_doctest(text, names, name(page), name(page), 0)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(example, out=said.append, clear_globs=False)
    assert not runner.failures, "".join(said)
    names.update(example.globs)


def test_the_example_of_the_readme_is_run() -> None:
    """The README's blocks are run by the fixture `place`, before those of any other page."""
    (shown,) = [text for run, language, text in blocks(ROOT / "README.md") if run]
    assert "store.backward" in shown
    assert "store.forward" in shown


@pytest.mark.spark
@pytest.mark.parametrize("page", [p for p in RUNNABLE if p.name != "README.md"], ids=name)
def test_the_examples_run(page: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    execute(page)


@pytest.mark.spark
def test_an_alert_has_four_reports_as_the_readme_says(place: Path) -> None:
    with hw.open(place / "prov") as store:
        alerts = store.results("stopped")
        pairs = store.backward("stopped", alerts["result_id"].to_pylist())
    assert alerts.num_rows > 0
    assert pairs.num_rows == 4 * alerts.num_rows


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_other_python_blocks_are_python(page: Path) -> None:
    for run, language, text in blocks(page):
        if language == "python" and not run:
            ast.parse(text)


# --- tables -----------------------------------------------------------------------------------


@pytest.mark.parametrize("page", OPERATORS, ids=name)
def test_the_tables_of_operators_and_captures_are_current(page: Path) -> None:
    text = page.read_text()
    assert text == support.updated(text), "run python -m headwater.lowering.support docs"


def test_the_parameters_of_start_are_listed() -> None:
    listed = [row[0].strip("`") for row in table(DOCS / "quickstart.md", "parameter")]
    assert listed == list(inspect.signature(hw.Flow.start).parameters)[1:]


def test_every_kind_of_step_has_a_rule() -> None:
    rules = [row[1].strip("`") for row in table(DOCS / "operators.md", "Frame method")]
    assert rules == [kind.kind for kind in KINDS]


def test_every_method_of_a_rule_exists() -> None:
    for row in table(DOCS / "operators.md", "Frame method"):
        for method in re.findall(r"`([\w.]+)", row[0]):
            owner, _, last = method.rpartition(".")
            owners = (F,) if owner == "F" else (hw.Flow, hw.Frame, GroupedFrame)
            assert any(hasattr(each, last) for each in owners), method


def test_the_columns_and_kinds_of_why_not_are_listed() -> None:
    columns, kinds = (
        [row[0].strip("`") for row in table(DOCS / "queries.md", heading)]
        for heading in ("column", "kind")
    )
    assert columns == why_not.COLUMNS.names
    assert kinds == list(fates.KINDS)


def test_the_table_of_relations_is_that_of_the_store() -> None:
    with duckdb.connect() as connection:
        schema.create(connection)
        schema.create_results(connection, 1, pa.schema([("own", pa.int32())]))
        schema.create_records(connection, 1, pa.schema([("own", pa.int32())]))
        columns = connection.execute(
            "SELECT table_name, list(column_name ORDER BY column_index) FROM duckdb_columns() "
            "WHERE NOT internal AND column_name <> 'own' GROUP BY ALL"
        ).fetchall()
    there = {re.sub(r"_1$", "", relation): names for relation, names in columns}
    written = {
        re.sub(r"_<\w+>", "", relation.strip("`")): re.findall(r"`(\w+)`", names)
        for relation, _, names in table(DOCS / "store.md", "relation")
    }
    assert written == there
    assert f"version is **{schema.FORMAT}**" in (DOCS / "store.md").read_text()


# --- commands ---------------------------------------------------------------------------------


@cache
def commands() -> dict[str, Any]:
    """Every command by its words: `results`, `bench capture`."""
    found: dict[str, Any] = {}

    def visit(command: Any, words: list[str]) -> None:
        found[" ".join(words)] = command
        for word, below in getattr(command, "commands", {}).items():
            visit(below, [*words, word])

    visit(typer.main.get_command(app), [])
    return found


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_command_and_option_exists(page: Path) -> None:
    text = page.read_text()
    shown = re.findall(r"^headwater (.+?)(?: +#.*)?$", text, re.MULTILINE)
    shown += re.findall(r"`headwater ([^`…]+)`", text)
    top = commands()[""]
    for line in shown:
        words = line.split()
        known = {option for p in top.params for option in p.opts}
        if not words[0].startswith("-"):
            path = " ".join(words[:2]) if " ".join(words[:2]) in commands() else words[0]
            assert path in commands(), f"headwater {line}: no such command"
            known |= {o for p in commands()[path].params for o in (*p.opts, *p.secondary_opts)}
        given = {w.partition("=")[0] for w in words if w.startswith("--")} - {"--help"}
        assert given <= known, f"headwater {line}: no such option"


def test_every_command_has_a_section() -> None:
    headings = re.findall(r"^## headwater ([\w-]+)$", (DOCS / "cli.md").read_text(), re.MULTILINE)
    assert headings == list(commands()[""].commands)


def test_the_table_of_operations_is_that_of_the_api() -> None:
    page = (DOCS / "rest.md").read_text()
    assert operations.written(page) == page


def test_make_targets_that_are_named_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        named = re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(), re.MULTILINE)
        assert set(named) <= targets, name(page)


# --- errors -----------------------------------------------------------------------------------


@cache
def templates() -> list[re.Pattern[str]]:
    """What the code can say: its texts, with anything where it fills in a value."""
    patterns = []
    for file in (ROOT / "src" / "headwater").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            parts: list[str] = []
            if isinstance(node, ast.JoinedStr):
                parts = [v.value if isinstance(v, ast.Constant) else "\0" for v in node.values]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                parts = re.split(r"(?<=\0)|(?=\0)", re.sub(r"\{\w*\}", "\0", node.value))
            # Shorter texts would match anything.
            if sum(len(part) for part in parts if part != "\0") >= 12:
                text = "".join(".+" if p == "\0" else re.escape(p) for p in parts)
                patterns.append(re.compile(text))
    return patterns


def test_the_quoted_errors_are_what_the_code_says() -> None:
    quoted = [
        line
        for page in (DOCS / "failures.md", *OPERATORS)
        for _, language, text in blocks(page)
        if language == "text"
        for line in text.splitlines()
    ]
    assert len(quoted) > 80
    wrong = [line for line in quoted if not any(p.fullmatch(line) for p in templates())]
    assert wrong == []
