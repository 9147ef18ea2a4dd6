"""Where in the user's code a step was written."""

from __future__ import annotations

import sys
from pathlib import Path

_PACKAGE = str(Path(__file__).parent.parent)


def callsite() -> str:
    """The file and line of the nearest caller outside Headwater, such as `job.py:12`.

    In a notebook it is the cell and its line, `In[4]:2`.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    file = frame.f_code.co_filename
    return f"{_cell(file) or Path(file).name}:{frame.f_lineno}"


def _cell(file: str) -> str | None:
    """The cell of a notebook whose code is called so: its file's name is but a number there."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", lambda file: None)
    told = name_of(file)
    return None if told is None else str(told[1])
