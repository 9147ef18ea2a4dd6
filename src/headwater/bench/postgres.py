"""A PostgreSQL server for the length of a benchmark: in a temporary folder, on a Unix socket."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    import pwd
    from collections.abc import Iterator

_INSTALLED = Path("/usr/lib/postgresql")  # where Debian puts each version
_USERS = ("postgres", "nobody")
_STARTING = 60.0  # seconds that a server may take
_LONGEST = 80  # a socket's address has little more than 100 bytes


class Unavailable(HeadwaterError):
    """There is no PostgreSQL here; the message says why, and how to get it."""


def find(name: str) -> Path:
    """A program of PostgreSQL's, the newest version's first."""

    def version(folder: Path) -> float:
        return float(folder.parent.name) if folder.parent.name[:1].isdigit() else 0.0

    folders = sorted(_INSTALLED.glob("*/bin"), key=version, reverse=True)
    for program in (folder / name for folder in folders):
        if program.is_file():
            return program
    if (found := shutil.which(name)) is not None:
        return Path(found)
    raise Unavailable(f"there is no {name} here; install a PostgreSQL server (postgresql)")


def driver() -> Any:
    """The driver for Python."""
    if importlib.util.find_spec("psycopg") is None:
        raise Unavailable("there is no driver here; pip install 'psycopg[binary]'")
    try:
        import psycopg  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:  # it finds no libpq
        raise Unavailable(f"{error}; pip install 'psycopg[binary]'") from error
    return psycopg


@contextmanager
def server(folder: Path | None = None) -> Iterator[str]:
    """Runs a new, empty server with its default settings; what to connect to.

    It is a child of this process, so that its CPU counts, and ends with the block.
    """
    driver()
    initdb, postgres = find("initdb"), find("postgres")
    user = _user()
    with tempfile.TemporaryDirectory(prefix="headwater-pg-", dir=folder) as name:
        place = Path(name)
        if len(os.fsencode(place)) > _LONGEST:
            raise Unavailable(f"{place} is too long for a socket's address; give another --folder")
        if user is not None:
            os.chown(place, user.pw_uid, user.pw_gid)
        data = place / "data"
        made = _run(
            place, user, [initdb, "-D", data, "-A", "trust", "-U", "headwater", "-E", "UTF8"]
        )
        if made.wait() != 0:
            raise Unavailable(f"initdb failed: {_last(place)}")
        arguments = [postgres, "-D", data, "-k", place, "-c", "listen_addresses="]
        running = _run(place, user, arguments)
        try:
            address = f"host={place} user=headwater dbname=postgres"
            _wait(running, place, address)
            yield address
        finally:
            if running.poll() is None:
                running.send_signal(signal.SIGINT)  # ends now, in good order
            running.wait()


def _user() -> pwd.struct_passwd | None:
    """Whom to run as: PostgreSQL refuses to be run by root."""
    import pwd

    if os.geteuid() != 0:
        return None
    for name in _USERS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise Unavailable("PostgreSQL refuses to run as root, and there is no other user here")


def _run(
    place: Path, user: pwd.struct_passwd | None, arguments: list[Any]
) -> subprocess.Popen[bytes]:
    as_user: dict[str, Any] = {}
    if user is not None:
        as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    with _said(place).open("ab") as said:
        return subprocess.Popen(
            [str(argument) for argument in arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            cwd="/",
            env={**os.environ, "LC_ALL": "C"},
            **as_user,
        )


def _said(place: Path) -> Path:
    return place / "said.txt"


def _last(place: Path) -> str:
    """The last line that a program said."""
    lines = _said(place).read_text(errors="replace").splitlines()
    return next((line for line in reversed(lines) if line.strip()), "it said nothing")


def _wait(running: subprocess.Popen[bytes], place: Path, address: str) -> None:
    psycopg = driver()
    deadline = time.monotonic() + _STARTING
    while True:
        try:
            psycopg.connect(address).close()
        except psycopg.OperationalError as error:
            if running.poll() is not None:
                raise Unavailable(f"postgres ended: {_last(place)}") from error
            if time.monotonic() >= deadline:
                raise Unavailable(f"postgres did not start in {_STARTING:.0f} s") from error
            time.sleep(0.1)
        else:
            return
