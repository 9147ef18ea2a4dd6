"""Spark's long errors in one line."""

from __future__ import annotations

import re

_CLASS = re.compile(r"^(org\.apache\.|java\.|scala\.|py4j\.)[\w.$]+:\s*")
_PYTHON = re.compile(r"^\s*(?:\w+\.)*(\w*(?:Error|Exception|Interrupt|Exit)\b.*)$", re.MULTILINE)
_RAISED = re.compile(
    r"\[USER_RAISED_EXCEPTION\]\s*([^\n]+?)(?:\s+SQLSTATE: \w+)?\s*$", re.MULTILINE
)


def one_line(error: BaseException) -> str:
    """The innermost message that says something, without classes and stack traces."""
    text = str(error)
    if raised := _RAISED.search(text):
        return raised[1]
    if "Traceback (most recent call last)" in text:
        # A Python worker's traceback: its last line is the user's own error.
        trace = text.split("Traceback (most recent call last)", 1)[1].split("\n\tat ")[0]
        if errors := _PYTHON.findall(trace):
            return " ".join(errors[-1].split())
    if caused := re.findall(r"Caused by: ([^\n]+)", text):
        return _CLASS.sub("", caused[-1]).strip()
    # What Spark says comes first; plans, the place in a SQL text and stack traces follow.
    said = re.split(r"\n\n|\n== SQL|;\s*\n|\n\s*[~'+:*]", text.strip())[0]
    return _CLASS.sub("", " ".join(said.split())) or type(error).__name__
