"""Examples in docstrings as blocks of code: Markdown would take `>>>` for quotations."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?:^|(?<=\n\n))(>>> .*?)(?=\n\n|\Z)", re.DOTALL)


def fenced(text: str) -> str:
    """A docstring with its examples in fences.

    >>> fenced("Adds.\\n\\n>>> 1 + 1\\n2\\n\\nMore.").splitlines()[2:6]
    ['```pycon', '>>> 1 + 1', '2', '```']
    """
    return EXAMPLE.sub(r"```pycon\n\1\n```", text)


class Doctests(griffe.Extension):
    """Rewrites docstrings as they are read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each module, class, function and value."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
