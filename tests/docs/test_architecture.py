"""The tree of folders in CONTRIBUTING is that of the package."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "headwater"


def tree() -> list[str]:
    """What the tree names: the first word of its lines, and modules that these speak of."""
    [block] = re.findall(
        r"^```\nsrc/headwater/\n(.*?)^```$",
        (ROOT / "CONTRIBUTING.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
    entries = re.findall(r"^  (\w+(?:/|\.py))", block, re.MULTILINE)
    modules = re.findall(r"^  \w+\.py .*", block, re.MULTILINE)
    spoken = [name for line in modules for name in re.findall(r"\w+\.py", line)]
    return [name for name in entries if name.endswith("/")] + spoken


def test_the_tree_names_every_folder_and_module_once() -> None:
    there = {f"{each.name}/" for each in PACKAGE.iterdir() if (each / "__init__.py").exists()}
    there |= {each.name for each in PACKAGE.glob("*.py") if not each.name.startswith("__")}
    named = tree()
    assert len(named) == len(set(named))
    assert set(named) == there


def test_every_module_says_what_it_is_about() -> None:
    silent = [
        str(file.relative_to(PACKAGE))
        for file in PACKAGE.rglob("*.py")
        if not file.read_text().startswith('"""')
    ]
    assert silent == []
