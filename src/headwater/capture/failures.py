"""Spark's long errors in one line."""

from __future__ import annotations

import re

_CLASS = re.compile(r"^(org\.apache\.|java\.|scala\.|py4j\.)[\w.$]+:\s*")
_PYTHON = re.compile(r"^\s*(?:\w+\.)*(\w*(?:Error|Exception|Interrupt|Exit)\b.*)$", re.MULTILINE)
_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\]\s*([^\n]+?)(?:\s+SQLSTATE: \w+)?\s*$", re.MULTILINE)


def one_line(error: BaseException) -> str:
    """The innermost message that says something, without classes and stack traces."""
    text = str(error)
    if raised := _RAISED.search(text):
        return raised[1]
    if "Traceback (most recent call last)" in text:
        # A Python worker's traceback: its last line is the user's own error.
        trace = text.split("Traceback (most recent call last)", 1)[1].split("\n\tat ")[0]
        if said := _PYTHON.findall(trace):
            return " ".join(said[-1].split())
    caused = re.findall(r"Caused by: ([^\n]+)", text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = caused[-1] if caused else (lines[0] if lines else type(error).__name__)
    return _CLASS.sub("", first).strip()
