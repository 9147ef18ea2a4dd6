"""A step says where it was written: a file and line, or a cell of a notebook."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from headwater.flow.callsite import callsite

CELLS = """
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.run_cell("from headwater.flow.callsite import callsite", store_history=True)
shell.run_cell("pass\\nprint(callsite())", store_history=True)
"""


def test_in_a_file_it_is_its_name_and_the_line() -> None:
    told, line = callsite(), sys._getframe().f_lineno
    assert told == f"{Path(__file__).name}:{line}"


def test_in_a_notebook_it_is_the_cell_and_the_line(tmp_path: Path) -> None:
    # A process of its own: IPython changes the one that it is in.
    ran = subprocess.run(
        [sys.executable, "-c", CELLS],
        capture_output=True,
        text=True,
        check=True,
        env={"IPYTHONDIR": str(tmp_path), "PYTHONPATH": ":".join(sys.path)},
    )
    assert ran.stdout.strip() == "In[2]:2"
