"""The groups of pages: entries with a * stand for all that match and that no other entry names."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any


def expanded(nav: list[Any], pages: list[str]) -> list[Any]:
    """Groups with every page in its place; a group with nothing in it is left out.

    >>> expanded([{"A": ["b.md", "c/*"]}, {"D": ["d/*"]}], ["b.md", "c/x.md", "c/index.md"])
    [{'A': ['b.md', 'c/index.md', 'c/x.md']}]
    """
    left = [page for page in pages if page not in set(_named(nav))]
    return _filled(nav, left)


def _named(nav: list[Any]) -> list[str]:
    found: list[str] = []
    for entry in nav:
        if isinstance(entry, str):
            found.append(entry)
        else:
            for below in entry.values():
                found += _named(below if isinstance(below, list) else [below])
    return found


def _filled(nav: list[Any], left: list[str]) -> list[Any]:
    """Takes from `left` what it places."""
    filled: list[Any] = []
    for entry in nav:
        if isinstance(entry, str) and "*" in entry:
            taken = [page for page in left if _matches(page, entry)]
            left[:] = [page for page in left if page not in taken]
            filled += sorted(taken, key=_place)
        elif isinstance(entry, dict):
            ((title, below),) = entry.items()
            within = _filled(below, left) if isinstance(below, list) else below
            filled += [{title: within}] if within else []
        else:
            filled.append(entry)
    return filled


def _place(page: str) -> tuple[bool, str]:
    """A folder's index first; `a` before `a.b`."""
    return not page.endswith("index.md"), page.removesuffix(".md")


def _matches(page: str, pattern: str) -> bool:
    """A * stands for pages of one folder, not of those below it."""
    return page.count("/") == pattern.count("/") and fnmatchcase(page, pattern)
