"""Spark's long errors in one line."""

from __future__ import annotations

import re

_NOISE = re.compile(r"^(org\.apache\.|java\.|scala\.|py4j\.)[\w.$]+:\s*")


def one_line(error: BaseException) -> str:
    """The innermost message that says something, without classes and stack traces."""
    text = str(error)
    caused = re.findall(r"Caused by: ([^\n]+)", text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    candidate = caused[-1] if caused else (lines[0] if lines else type(error).__name__)
    if "raise_error" in candidate.lower() or "USER_RAISED_EXCEPTION" in candidate:
        candidate = candidate.split("USER_RAISED_EXCEPTION]", 1)[-1]
    return _NOISE.sub("", candidate).strip()
