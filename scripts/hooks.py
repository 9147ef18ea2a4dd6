"""What MkDocs calls while it builds the site: see `mkdocs.yml`.

Pages stay as GitHub shows them. Here they get what a site needs beyond that: notebooks as pages,
the reference, files beside `docs/` that are linked to, diagrams as pictures, links that fit.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, InclusionLevel

from website import notebooks, outside, reference
from website.diagrams import DiagramError, svg
from website.navigation import expanded

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DIAGRAM = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KEPT = '<div class="kept" data-number="{}"></div>'
FOUND = re.compile(r'<div class="kept" data-number="(\d+)"></div>')

_kept: list[str] = []
"""HTML that Markdown must not touch, by the number in its place."""
_origins: dict[str, str] = {}
"""The repository paths of pages that are not where they are in `docs/`."""


def slug(heading: str, separator: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


def keep(html: str) -> str:
    """What stands for some HTML until the page is made."""
    _kept.append(html)
    return KEPT.format(len(_kept) - 1)


def on_config(config: MkDocsConfig) -> None:
    """Begins anew, with GitHub's anchors."""
    _kept.clear()
    _origins.clear()
    config.mdx_configs["toc"]["slugify"] = slug


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Adds the pages that are made, then gives every page its place."""
    for file in [each for each in files if each.src_uri.endswith(".ipynb")]:
        name = Path(file.src_uri).name
        page = file.src_uri.removesuffix(".ipynb") + ".md"
        add(files, config, page, notebooks.page(file.content_string, name, keep))
    for path, text in reference.api_pages().items():
        add(files, config, path, text)
    add(files, config, "reference/commands.md", reference.commands_page())
    beside(files, config)
    pages = [file.src_uri for file in files.documentation_pages()]
    shown = [page for page in pages if not page.startswith("project/files/")]
    config.nav = expanded(config.nav or [], shown)


def beside(files: Files, config: MkDocsConfig) -> None:
    """Adds the pages of the root, and all files beside `docs/` that pages link to."""
    root = [path for path in outside.PROJECT if path.endswith(".md")]
    texts = {f"docs/{file.src_uri}": file.content_string for file in files.documentation_pages()}
    texts |= {path: (ROOT / path).read_text(encoding="utf-8") for path in root}
    for path in sorted({*outside.linked(ROOT, texts), *outside.PROJECT}):
        at = outside.page_of(path)
        add(files, config, at, outside.text_of(ROOT, path))
        _origins[at] = path
        if at.startswith("project/files/"):
            files.src_uris[at].inclusion = InclusionLevel.NOT_IN_NAV


def add(files: Files, config: MkDocsConfig, path: str, text: str) -> None:
    """A page that is made here."""
    files.append(File.generated(config, path, content=text))


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Draws diagrams, mends links, and links the tables of names to the reference."""
    at = page.file.src_uri

    def drawn(match: re.Match[str]) -> str:
        try:
            return keep(f'<div class="diagram-frame">{svg(match[1])}</div>')
        except DiagramError as error:
            raise PluginError(f"{at}: {error}") from error

    text = DIAGRAM.sub(drawn, markdown)
    text = re.sub(r"^<!-- .*? -->\n", "", text, flags=re.MULTILINE)
    text = outside.relinked(text, _origins.get(at, f"docs/{at}"), at)
    if at == "api.md":
        text = to_reference(text)
    if at == "cli.md":
        anchor = "[All options of `{0}`](reference/commands.md#{1})."
        text = re.sub(
            r"^## (headwater [\w-]+)$",
            lambda m: f"{m[0]}\n\n{anchor.format(m[1], slug(m[1], '-'))}",
            text,
            flags=re.MULTILINE,
        )
    return text


def to_reference(text: str) -> str:
    """The page of public names, each a link to its place in the reference."""
    for package in reference.PACKAGES:
        short = "hw" if package == "headwater" else package.rpartition(".")[2]
        for name, value in reference.names(package).items():
            path = reference.path_of(package, name, value)
            text = text.replace(f"| `{short}.{name}` |", f"| [`{short}.{name}`][{path}] |")
    return text


def on_page_content(html: str, **_: Any) -> str:
    """Puts kept HTML into its place."""
    return FOUND.sub(lambda match: _kept[int(match[1])], html)
