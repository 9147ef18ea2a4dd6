"""Pages on the papers: a row for each thing that a paper numbers, and what they name is there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "papers"
OVERVIEW = ROOT / "docs" / "papers.md"
PACKAGE = ROOT / "src" / "headwater"
COLUMNS = 4


def several(kind: str, *numbers: str | int | range) -> set[str]:
    """Numbered things: `several("Figure", range(1, 3), "A")` has Figure 1, 2 and A."""
    found = set[str]()
    for number in numbers:
        each = number if isinstance(number, range) else [number]
        found |= {f"{kind} {one}" for one in each}
    return found


NUMBERED = {
    "saf": several("Figure", range(1, 13)) | several("Table", "I", "II", "III"),
    "ariadne": several("Figure", range(1, 21))
    | several("Definition", "3.1", "3.2")
    | several("Example", range(1, 6))
    | {"Algorithm 1", "Theorem 1"},
    "ananke": several("Figure", range(1, 20))
    | several("Definition", "2.1", "3.1", "3.2", "3.3")
    | several("Lemma", "4.1", "4.2")
    | several("Claim", "5.1", "5.2")
    | several("Equation", "4.1", "4.2", "5.1")
    | several("Algorithm", 1, 2)
    | several("Table", 1, 2)
    | {"Theorem 4.1", "Corollary 4.1", "Remark 4.1", "Listing 1"},
    "big-provenance": several("Figure", range(1, 17)) | {"Algorithm 1", "Table I"},
    "streamflow": several("Figure", range(1, 79)) | several("Equation", range(1, 6)),
}
"""What each paper numbers, from its own text."""

UNNUMBERED = {
    "saf": {"Assumptions (III-A)": 1, "Formulas of V-A": 1},
    "ariadne": {"P-join": 1, "Footnote 2": 1},
    "ananke": {"R-V": 1, "R-E": 1, "R-L": 1, "Metric": 2},
    "big-provenance": {"Definition: ": 6, "Further work": 4},
    "streamflow": {"Requirement: ": 4, "Rule: ": 4, "Definition: ": 1, "Little": 1},
}
"""How many rows begin with what a paper tells without a number."""

KINDS = "Figure|Table|Definition|Example|Algorithm|Theorem|Lemma|Corollary|Remark|Claim|Equation"
NUMBER = r"(?:\d+(?:\.\d+)?|[IVX]+\b)"
NAMED = re.compile(rf"\b({KINDS}|Listing)s? ({NUMBER}(?:(?:, | and |–){NUMBER})*)")
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
MODULE = re.compile(r"`(\w+/[\w/]+\.py)`")


def rows(page: str) -> list[list[str]]:
    """The cells of each row of each table of a page."""
    lines = (PAGES / f"{page}.md").read_text().splitlines()
    table = [line for line in lines if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    return [row for row in cells if not row[0].startswith("in the ")]


def numbered(cell: str) -> set[str]:
    """The numbered things that a cell names: `Figures 3 and 4`, `Figures 67–69`, `Table II`.

    >>> sorted(numbered("Figures 3 (a) and 5–7, Lemma 4.1: a chain"))
    ['Figure 3', 'Figure 5', 'Figure 6', 'Figure 7', 'Lemma 4.1']
    """
    found = set[str]()
    for kind, listed in NAMED.findall(re.sub(r" \([a-c]\)(, \([a-c]\))*", "", cell)):
        for part in re.split(", | and ", listed):
            first, _, last = part.partition("–")
            every = range(int(first), int(last) + 1) if last else [first]
            found |= {f"{kind} {number}" for number in every}
    return found


@cache
def functions(file: str) -> frozenset[str]:
    return frozenset(re.findall(r"^ *def (test_\w+)\(", (ROOT / file).read_text(), re.MULTILINE))


@pytest.mark.parametrize("page", NUMBERED)
def test_everything_that_is_numbered_has_a_row(page: str) -> None:
    told = set().union(*(numbered(row[0]) for row in rows(page)))
    assert NUMBERED[page] - told == set(), "these have no row"
    assert told - NUMBERED[page] == set(), "the paper has no such things"


@pytest.mark.parametrize("page", UNNUMBERED)
def test_what_has_no_number_has_rows_too(page: str) -> None:
    for start, number in UNNUMBERED[page].items():
        assert sum(row[0].startswith(start) for row in rows(page)) == number, start


@pytest.mark.parametrize("page", NUMBERED)
def test_a_row_says_where_or_why_not(page: str) -> None:
    for row in rows(page):
        assert len(row) == COLUMNS, row
        name, here, checked, differs = row
        assert name, row
        assert here, row
        if here.startswith("None"):
            assert differs, f"{name}: there is no counterpart, and no reason"
        else:
            assert checked, f"{name}: no test is named"


@pytest.mark.parametrize("page", NUMBERED)
def test_tests_and_modules_that_are_named_exist(page: str) -> None:
    text = (PAGES / f"{page}.md").read_text()
    named = TEST.findall(text)
    assert len(named) > 10
    for file, function in named:
        assert (ROOT / file).is_file(), file
        assert not function or function in functions(file), f"{file} has no {function}"
    modules = [name for name in MODULE.findall(text) if not name.startswith("tests/")]
    assert [name for name in modules if not (PACKAGE / name).is_file()] == []


def test_the_overview_leads_to_every_page() -> None:
    linked = set(re.findall(r"\(papers/([\w-]+)\.md\)", OVERVIEW.read_text()))
    assert linked == NUMBERED.keys() == {page.stem for page in PAGES.glob("*.md")}


def test_numbers_are_read_as_written() -> None:
    assert numbered("Figures 10 (c) and 11 (c): marginal cost") == {"Figure 10", "Figure 11"}
    assert numbered("Figure 12 (b), (c): delays of 1 and 2 ms") == {"Figure 12"}
    assert numbered("Theorem 4.1 and Equation 4.1: U") == {"Theorem 4.1", "Equation 4.1"}
    assert numbered("Figures 67–69: three waves") == {"Figure 67", "Figure 68", "Figure 69"}
    assert numbered("Table II: six operations") == {"Table II"}
