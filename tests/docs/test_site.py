"""The documentation's site: it builds without a warning, and all in it leads somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import typer

from headwater.cli.app import app
from website import reference

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), *sorted(DOCS.rglob("*.ipynb"))]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does; a warning is an error there."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [*command, "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return folder


class Read(HTMLParser):
    """What a page of the site links to, loads, and can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.nav: set[str] = set()
        self._navs = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._navs += tag == "nav"
        self.anchors |= {value for value in (given.get("id"), given.get("name")) if value}
        link = given.get("href")
        if tag == "a" and link:
            self.links.append(link)
            if self._navs:
                self.nav.add(link)
        elif tag == "link" and link:
            self.loads.append(link)
        if tag in ("img", "script", "iframe", "source") and given.get("src"):
            self.loads.append(given["src"] or "")

    def handle_endtag(self, tag: str) -> None:
        self._navs -= tag == "nav"


@cache
def read(page: Path) -> Read:
    return Read(page.read_text(encoding="utf-8"))


def target(site: Path, page: Path, link: str) -> Path | None:
    """The file that a link leads to; None for one that leads elsewhere."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    if not parts.path:
        return page
    place = (page.parent / unquote(parts.path)).resolve()
    return place / "index.html" if place.is_dir() else place


def made(site: Path, page: Path) -> Path:
    return site / page.relative_to(DOCS).with_suffix(".html")


def test_every_page_is_in_the_navigation(site: Path) -> None:
    front = site / "index.html"
    shown = {target(site, front, link) for link in read(front).nav}
    missing = [page.name for page in PAGES if made(site, page) not in shown]
    assert missing == []
    for name in ("readme", "contributing", "changelog", "licence"):
        assert site / "project" / f"{name}.html" in shown


def test_every_link_leads_somewhere(site: Path) -> None:
    wrong = []
    for page in sorted(site.rglob("*.html")):
        for link in {*read(page).links, *read(page).loads}:
            place = target(site, page, link)
            if place is None or page.name == "404.html":
                continue
            anchor = unquote(urlsplit(link).fragment)
            if not place.is_file():
                wrong.append(f"{page.relative_to(site)}: {link} is not there")
            elif anchor and place.suffix == ".html" and anchor not in read(place).anchors:
                wrong.append(f"{page.relative_to(site)}: {link} has no such heading")
    assert wrong == []


def test_reading_it_fetches_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loads = read(page).loads
        assert [one for one in loads if re.match(r"(https?:)?//", one)] == [], page.name
        # The theme would get what draws these from elsewhere.
        assert 'class="mermaid"' not in page.read_text(encoding="utf-8"), page.name


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    for package in reference.PACKAGES:
        anchors = read(site / "reference" / "api" / f"{package}.html").anchors
        for name, value in reference.names(package).items():
            assert reference.path_of(package, name, value) in anchors


def test_the_methods_of_a_class_are_in_the_reference(site: Path) -> None:
    text = (site / "reference" / "api" / "headwater.html").read_text(encoding="utf-8")
    anchors = read(site / "reference" / "api" / "headwater.html").anchors
    for name in ("Flow.source", "Frame.filter", "Run.wait", "Store.backward", "Store.graph"):
        assert f"headwater.{name}" in anchors
    assert "The source records of a result" in text


def test_every_command_and_option_is_in_the_reference(site: Path) -> None:
    text = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    anchors = read(site / "reference" / "commands.html").anchors

    def visit(command: object, words: str) -> None:
        assert words.replace(" ", "-") in anchors
        for parameter in getattr(command, "params", ()):
            if parameter.param_type_name == "option" and not parameter.hidden:
                assert f"<code>{parameter.opts[0]}" in text, f"{words} {parameter.opts[0]}"
        for word, below in getattr(command, "commands", {}).items():
            visit(below, f"{words} {word}")

    visit(typer.main.get_command(app), "headwater")


def test_the_tables_of_public_names_are_current() -> None:
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    assert page == reference.written(page), "run scripts/website/reference.py on the page"


# --- the folder tree --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "heading"),
    [("CONTRIBUTING.md", "Where a line of code belongs"), ("docs/how-it-works.md", "Layers")],
)
def test_every_folder_of_the_package_is_named_once(page: str, heading: str) -> None:
    """The folder tree reads as the pages on the architecture say."""
    package = ROOT / "src" / "headwater"
    there = sorted(f.name for f in package.iterdir() if (f / "__init__.py").exists())
    _, _, below = (ROOT / page).read_text(encoding="utf-8").partition(f"## {heading}")
    tree = below.split("```")[1]
    # What a line is about is its first folder, in one of two columns.
    named = re.findall(r"^(?:  |[\w' ]{20})(\w+)/ ", tree, re.MULTILINE)
    assert sorted(named) == there


def test_the_metrics_that_are_named_exist() -> None:
    code = "\n".join(f.read_text() for f in (ROOT / "src" / "headwater").rglob("*.py"))
    named = set(re.findall(r"`(headwater_\w+)`", (DOCS / "operating.md").read_text()))
    assert len(named) > 5
    assert {name for name in named if f'"{name}"' not in code} == set()
