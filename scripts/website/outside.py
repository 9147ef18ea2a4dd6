"""Pages and files beside `docs/` that the site has too, so that links to them lead somewhere."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = {
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "README.md": "project/readme.md",
    "LICENSE": "project/licence.md",
}
"""Files of the repository's root, and the pages that they become."""
LINK = re.compile(r"(\[[^\]]*\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
CODE = re.compile(r"^ *```.*?^ *```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
LANGUAGES = {".py": "python", ".sh": "sh", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}


def page_of(path: str) -> str:
    """The page that a file outside `docs/` becomes."""
    return PROJECT.get(path, f"project/files/{path}.md")


def text_of(root: Path, path: str) -> str:
    """What such a page says: the Markdown of a page, a file as it is."""
    text = (root / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        return text
    title = "Licence" if path == "LICENSE" else f"`{path}`"
    language = LANGUAGES.get(posixpath.splitext(path)[1], "text")
    # One more quote than any in the file.
    fence = max([*re.findall("`+", text), "``"], key=len) + "`"
    return f"# {title}\n\n{fence}{language}\n{text}\n{fence}\n"


def linked(root: Path, texts: dict[str, str]) -> set[str]:
    """The files outside `docs/` that pages link to; `texts` are pages by their repository path."""
    found: set[str] = set()
    for path, text in texts.items():
        for link in LINK.finditer(CODE.sub("", text)):
            target = resolved(path, link[2])
            if target is not None and not target.startswith("docs/") and (root / target).is_file():
                found.add(target)
    return found


def resolved(path: str, link: str) -> str | None:
    """The repository path of a relative link on a page; None for any other link.

    >>> resolved("docs/a.md", "../src/x.py"), resolved("docs/a.md", "mailto:x@y.z")
    ('src/x.py', None)
    """
    if re.match(r"[a-z]+:|#|/", link):
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), link))


def relinked(text: str, path: str, at: str) -> str:
    """A page's text with links as they are on the site: `path` in the repository, `at` there."""
    kept = [(match.start(), match.end()) for match in CODE.finditer(text)]

    def link(match: re.Match[str]) -> str:
        if any(start <= match.start() < end for start, end in kept):
            return match[0]
        target = resolved(path, match[2])
        if target is None:
            return match[0]
        inside = target.removeprefix("docs/") if target.startswith("docs/") else page_of(target)
        if inside.endswith(".ipynb"):
            inside = f"{inside.removesuffix('.ipynb')}.md"
        return f"{match[1]}{posixpath.relpath(inside, posixpath.dirname(at) or '.')}{match[3]}"

    return LINK.sub(link, text)
