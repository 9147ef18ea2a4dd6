"""Values that lead somewhere: a Python function by its place, a URL."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

from headwater.compose.values import Value, Wrong, shown

CALL = r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$"


@dataclass(frozen=True, slots=True)
class Call(Value):
    """A Python function by its place, `module:function`; a function itself in Python."""

    name: ClassVar[str] = "`module:function`"

    def read(self, given: Any) -> str:
        """Refuse what can't be found again by its name."""
        if isinstance(given, Callable) and not isinstance(given, type):  # type: ignore[arg-type]
            module, name = getattr(given, "__module__", None), getattr(given, "__qualname__", "<")
            if not module or module == "__main__" or "<" in name:
                raise Wrong(f"is a function that can be imported, and {shown(given)} can't")
            return f"{module}:{name}"
        if not isinstance(given, str) or not re.fullmatch(CALL, given):
            raise Wrong(f"is a function as 'module:function', not {shown(given)}")
        return given

    def schema(self) -> dict[str, Any]:
        """A text with a colon."""
        return {"type": "string", "pattern": CALL}


@dataclass(frozen=True, slots=True)
class Target(Value):
    """What a service is: a URL, or a function."""

    name: ClassVar[str] = "URL or `module:function`"

    def read(self, given: Any) -> str:
        """Refuse as the one that was meant would."""
        if isinstance(given, str) and "//" in given:
            return Url().read(given)
        return Call().read(given)

    def schema(self) -> dict[str, Any]:
        """Either."""
        return {"anyOf": [Url().schema(), Call().schema()]}


@dataclass(frozen=True, slots=True)
class Url(Value):
    """A URL of http or https, without a password."""

    name: ClassVar[str] = "URL"

    def read(self, given: Any) -> str:
        """Refuse other schemes, and secrets in files."""
        if not isinstance(given, str):
            raise Wrong(f"is a URL, not {shown(given)}")
        try:
            parts = urlsplit(given)
            host = parts.hostname
        except ValueError as error:
            raise Wrong(f"is a URL, and {given!r} is none: {error}") from error
        if parts.scheme not in ("http", "https") or not host:
            raise Wrong(f"is a URL with http or https, not {given!r}")
        if parts.username is not None or parts.password is not None:
            raise Wrong("has a user's name or password in its URL, which a file must not hold")
        return given

    def schema(self) -> dict[str, Any]:
        """A text with the scheme."""
        return {"type": "string", "pattern": "^https?://[^/@]+"}
