"""How a service is set up: who may do what, and how much of it."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from headwater.errors import HeadwaterError

TOKEN = "HEADWATER_TOKEN"
"""The environment variable with the token for writing."""
READ_TOKEN = "HEADWATER_READ_TOKEN"
"""The one with the token for reading, where reading needs one."""
TOKEN_FILE = ".token"
"""In the folder of flows: the token that was made up where none was given."""
SHORTEST = 16
"""Characters that a token has at least."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request, one client and all of them may take."""

    body: int = 32 << 20
    """Bytes of a request."""
    unpacked: int = 256 << 20
    """Bytes of what came as Arrow, once it is decompressed and its dictionaries are written out."""
    rows: int = 10_000
    """Rows of one answer."""
    export: int = 256 << 20
    """Bytes of an exported file."""
    seconds: float = 10.0
    """How long a query of the store may take."""
    replay_seconds: float = 120.0
    """How long a replay may take, and what else needs Spark."""
    rate: float = 1_000.0
    """Requests a second of one client; so many may also come at once."""
    followers: int = 64
    """Connections that follow something, in all."""
    vertices: int = 5_000
    """Vertices of one sample of the live graph."""
    workers: int = max(2, os.cpu_count() or 1)
    """Queries of the store at the same time; others wait."""
    waiting: int = 256
    """Requests that wait for one of them; more are told to come later."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Who may do what."""

    token: str | None = None
    """What writing needs; None: nobody may write."""
    read_token: str | None = None
    """What reading needs, if anything; the token for writing will do as well."""
    allow_code: bool = False
    """Whether flows that come by REST may have Python code and commands."""
    allow_urls: tuple[str, ...] = ()
    """Beginnings of the addresses that such flows may call."""
    allow_mail: tuple[str, ...] = ()
    """E-mail addresses, or domains after an @, that such flows may write to."""
    roots: tuple[Path, ...] = ()
    """Folders in which such flows may read files."""
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")
    """Names that the service may be called by: a page elsewhere can't reach it under its own."""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        for what, token in (("token", self.token), ("read token", self.read_token)):
            if token is not None and (len(token) < SHORTEST or not token.isascii()):
                raise HeadwaterError(
                    f"the {what} is too short or not plain text: give {SHORTEST} characters or "
                    "more, such as `openssl rand -hex 16` prints"
                )


def kept_token(folder: Path) -> str:
    """The token from the environment, or one that is made up once and kept beside the flows."""
    if told := os.environ.get(TOKEN):
        return told
    file = folder / TOKEN_FILE
    try:
        if known := file.read_text().strip():
            return known
    except FileNotFoundError:
        pass
    folder.mkdir(parents=True, exist_ok=True)
    made = secrets.token_urlsafe(24)
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        out.write(made + "\n")
    fresh.replace(file)
    return made
