"""`CITATION.cff` is what tools expect, and says of Headwater what the package says."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import headwater as hw

ROOT = Path(__file__).parents[2]
PAPERS = ROOT / "docs" / "papers"

REQUIRED = {"cff-version", "message", "title", "authors"}
REFERENCE = {"type", "title", "authors", "year"}
TYPES = {"article", "conference-paper", "thesis"}


@pytest.fixture(scope="module")
def cited() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    return found


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def test_it_has_what_the_format_requires(cited: dict[str, Any]) -> None:
    assert cited.keys() >= REQUIRED
    assert cited["cff-version"] == "1.2.0"
    assert cited["type"] == "software"
    for entry in (cited, *cited["references"]):
        # People have names of two parts, groups and companies one.
        assert all(
            set(author) in ({"name"}, {"given-names", "family-names"})
            for author in entry["authors"]
        )


def test_it_agrees_with_the_package(cited: dict[str, Any], project: dict[str, Any]) -> None:
    assert str(cited["version"]) == hw.__version__
    assert cited["license"] == project["license"]
    assert cited["abstract"].rstrip(".") == project["description"].rstrip(".")
    assert cited["keywords"] == project["keywords"]
    assert [author["name"] for author in cited["authors"]] == [
        author["name"] for author in project["authors"]
    ]


def test_every_paper_is_cited_once_and_has_its_page(cited: dict[str, Any]) -> None:
    pages = {page: " ".join(page.read_text().split()) for page in PAPERS.glob("*.md")}
    met = set()
    for reference in cited["references"]:
        assert reference.keys() >= REFERENCE
        assert reference["type"] in TYPES
        (page,) = [page for page, text in pages.items() if reference["title"] in text]
        for author in reference["authors"]:
            assert author["family-names"] in pages[page]
        assert str(reference["year"]) in pages[page]
        assert reference.get("doi", "") in pages[page]
        met.add(page)
    assert met == pages.keys()
    assert len(cited["references"]) == len(pages)
